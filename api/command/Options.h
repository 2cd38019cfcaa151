#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/command/ExitStatus.h"
#include "api/command/Layers.h"

namespace hearth::cli {

/// The program was called wrongly: exit status 2. what() and the hint are one sentence each.
class UsageError : public std::runtime_error {
public:
    explicit UsageError(const std::string& message, std::string hint = {})
        : std::runtime_error(message), hint_(std::move(hint)) {}
    const std::string& hint() const noexcept { return hint_; }

private:
    std::string hint_;
};

/// Looks up a variable of the environment.
using Environment = std::function<std::optional<std::string>(const std::string&)>;

/// One `--name VALUE`, `--name=VALUE`, `-l VALUE` or, without `value`, a switch.
struct Flag {
    std::string name = {};      ///< "data-dir"
    char letter = 0;            ///< 'o' for -o
    std::string cluster = {};   ///< another spelling, several letters: "it" for -it
    std::string value = {};     ///< the value's name in the help, "DIR"; empty: a switch
    std::string help = {};      ///< one sentence, no full stop
    std::string fallback = {};  ///< the default, for the help only
    bool repeats = false;  ///< may be given several times; separated by commas in the environment
    /// True if HEARTH_<NAME> sets it; false for a flag of one call only, such as the code to run.
    bool environment = true;
    /// The possible values, for completion: words, or one kind as in CommandSpec::operands.
    std::vector<std::string> choices = {};
};

/// A flag of one call only: no variable of the environment sets it. Without `value`, a switch.
Flag ownFlag(std::string name, char letter, std::string value, std::string help,
             bool repeats = false);

/// Everything that the parser and the help know about one command.
struct CommandSpec {
    std::string name;
    std::string arguments;  ///< "[SCRIPT] [-- ARG…]"
    std::string summary;    ///< one line
    std::string details;    ///< paragraphs, may be empty
    std::vector<Flag> flags;
    std::size_t least = 0;  ///< positional arguments
    std::size_t most = 0;
    bool rest = false;  ///< takes arguments after `--`
    /// The positional argument with this number and all words after it, also flags, are treated as
    /// if `--` preceded them: they belong to the program that it names.
    std::size_t program_at = SIZE_MAX;
    /// The kind of each positional argument, for completion; the last one also applies to all after
    /// it: "word|word", or "@file", "@dir", "@workspace", "@pool", "@execution", "@image",
    /// "@command", "@remote" (a workspace's path or a file); "" if unknown.
    std::vector<std::string> operands = {};
    /// Flags of other programs that do not exist here, each with a hint.
    std::vector<std::pair<std::string, std::string>> others = {};
    /// A separate program, not a command of `hearth`.
    bool program = false;

    std::string called() const { return program ? name : "hearth " + name; }
};

/// The variable that sets a flag: "HEARTH_DATA_DIR".
std::string environmentName(std::string_view flag);
/// The candidate nearest to `word`, if it is near enough to be the intended one.
std::optional<std::string> suggestion(std::string_view word,
                                      const std::vector<std::string>& candidates);

/// "a, b or c".
std::string anyOf(const std::vector<std::string>& words);
/// The error for a word that is not in `known`. Its hint is the nearest known word, else
/// `otherwise`, else all of them.
UsageError unknownWord(const std::string& message, std::string_view word,
                       const std::vector<std::string>& known, const std::string& otherwise = {});

/// The flags and arguments of one call: the command line over the environment.
class Options {
public:
    /// Throws UsageError for an unknown flag (with a suggestion), a missing or unwanted value, a
    /// flag given twice, too few or too many arguments. `--help` and `-h` stop the parsing.
    static Options parse(const CommandSpec& spec, const std::vector<std::string>& arguments,
                         const Environment& environment);

    bool help() const { return help_; }
    /// All values given for a flag, and their source; nullopt if neither flag nor variable is set.
    std::optional<LayeredValue> given(std::string_view flag) const;
    /// The last value given.
    std::optional<std::string> get(std::string_view flag) const;
    std::string get(std::string_view flag, std::string_view fallback) const;
    std::vector<std::string> all(std::string_view flag) const;
    /// The value of a switch; false if absent.
    bool on(std::string_view flag) const;
    /// Source::Default if it was not given.
    Source source(std::string_view flag) const;
    /// Throw UsageError that names the flag if the value is not of that kind or out of range.
    std::int64_t number(std::string_view flag, std::int64_t fallback, std::int64_t least,
                        std::int64_t most) const;
    /// "90s", "1h30m", or a plain number of seconds.
    std::optional<std::chrono::milliseconds> duration(std::string_view flag) const;
    /// Bytes: "256Mi", or "512m" and "1g" with docker's binary meaning.
    std::optional<std::uint64_t> size(std::string_view flag) const;

    /// A variable that belongs to no flag, such as those of proxies.
    std::optional<std::string> variable(const std::string& name) const {
        return environment_ ? environment_(name) : std::nullopt;
    }

    const std::vector<std::string>& positional() const { return positional_; }
    /// The words after `--`.
    const std::vector<std::string>& rest() const { return rest_; }

private:
    void take(const Flag& flag, const std::string& text, const std::string& written);
    void takeEnvironment(const Flag& flag, const std::string& text);

    Layers values_;
    Environment environment_;
    std::vector<std::string> positional_;
    std::vector<std::string> rest_;
    bool help_ = false;
};

/// The page of `hearth COMMAND --help`, made from the table.
std::string helpText(const CommandSpec& spec);

}  // namespace hearth::cli
