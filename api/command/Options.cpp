#include "api/command/Options.h"

#include <Poco/String.h>
#include <Poco/StringTokenizer.h>
#include <Poco/Util/HelpFormatter.h>
#include <Poco/Util/OptionException.h>
#include <Poco/Util/OptionProcessor.h>
#include <Poco/Util/OptionSet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <numeric>
#include <sstream>

#include "base/Units.h"

namespace hearth::cli {
namespace {

constexpr int kHelpWidth = 80;

const Flag* findFlag(const CommandSpec& spec, std::string_view name) {
    const auto it = std::ranges::find(spec.flags, name, &Flag::name);
    return it == spec.flags.end() ? nullptr : &*it;
}

const Flag* findLetter(const CommandSpec& spec, char letter) {
    const auto it = std::ranges::find(spec.flags, letter, &Flag::letter);
    return it == spec.flags.end() || letter == 0 ? nullptr : &*it;
}

/// The flag that these letters together stand for, in any order.
const Flag* findCluster(const CommandSpec& spec, const std::string& word) {
    for (const Flag& flag : spec.flags) {
        if (flag.cluster.empty() || word.size() != flag.cluster.size() + 1) continue;
        if (std::is_permutation(flag.cluster.begin(), flag.cluster.end(), word.begin() + 1)) {
            return &flag;
        }
    }
    return nullptr;
}

/// True if `word` begins with a switch's letter and more letters follow, like -aq with -a.
bool beginsWithSwitch(const CommandSpec& spec, const std::string& word) {
    if (word.size() < 3 || word[0] != '-' || word[1] == '-' || word[2] == '=') return false;
    const Flag* first = findLetter(spec, word[1]);
    return first != nullptr && first->value.empty() && findLetter(spec, word[2]) != nullptr &&
           findCluster(spec, word) == nullptr;
}

std::optional<bool> parseSwitch(std::string_view text) {
    for (const std::string_view yes : {"1", "true", "yes", "on"}) {
        if (text == yes) return true;
    }
    for (const std::string_view no : {"0", "false", "no", "off", ""}) {
        if (text == no) return false;
    }
    return std::nullopt;
}

/// Insertions, deletions, substitutions and swapped neighbours each count one.
std::size_t editDistance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> above(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(above.begin(), above.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool same = a[i - 1] == b[j - 1];
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
        }
        std::swap(before, above);
        std::swap(above, row);
    }
    return above[b.size()];
}

/// Translates other programs' flags whose meaning has a different name here.
std::string commonName(const std::string& written) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kMeant = {{
        {"-m", "memory"},
        {"-n", "name"},
        {"-l", "label"},
        {"-t", "timeout"},
        {"--workdir", "cwd"},
        {"--cpus", "cpu"},
        {"--labels", "label"},
        {"--directory", "cwd"},
    }};
    for (const auto& [other, ours] : kMeant) {
        if (written == other) return std::string(ours);
    }
    return {};
}

std::string usageOf(const CommandSpec& spec) {
    const std::string gap = spec.flags.empty() || spec.arguments.empty() ? "" : " ";
    return (spec.flags.empty() ? "" : "[flags]") + gap + spec.arguments;
}

UsageError unknownFlag(const CommandSpec& spec, const std::string& written,
                       const std::string& name) {
    std::vector<std::string> names{"help"};
    for (const Flag& known : spec.flags) names.push_back(known.name);
    const std::string message = "unknown flag " + written;
    for (const auto& [other, instead] : spec.others) {
        if (written == other) return UsageError(message, instead);
    }
    if (const std::string meant = commonName(written); findFlag(spec, meant) != nullptr) {
        return UsageError(message, "write --" + meant);
    }
    if (const auto near = suggestion(name, names)) {
        return UsageError(message, "did you mean --" + *near + "?");
    }
    const std::string help = "see `" + spec.called() + " --help`";
    if (spec.program_at != SIZE_MAX) {
        return UsageError(message, "write flags of the program after its name; " + help);
    }
    if (spec.rest) return UsageError(message, "write flags of the program after --; " + help);
    return UsageError(message, "usage: " + spec.called() + " " + usageOf(spec) + "; " + help);
}

/// A flag in the command line.
struct GivenFlag {
    const Flag* flag;
    std::string written;  ///< "-e", "--env"
    std::string word;     ///< "--env", "--env=A=1"
};

/// Poco never sees words that it would misread: it takes `-eN=1` for `--env=1`, and accepts
/// abbreviations and any case as a name. So a letter becomes its flag's name, and names are exact.
GivenFlag exactFlag(const CommandSpec& spec, const std::string& word) {
    if (const Flag* flag = findCluster(spec, word)) return {flag, word, "--" + flag->name};
    const bool by_letter = word[1] != '-';
    const std::string written = word.substr(0, by_letter ? 2 : word.find('='));
    const std::string name = written.substr(by_letter ? 1 : 2);
    const Flag* flag = by_letter ? findLetter(spec, word[1]) : findFlag(spec, name);
    if (flag == nullptr) throw unknownFlag(spec, written, name);
    const std::string value = word.substr(written.size());
    const bool joined = !value.empty() && value[0] != '=';
    return {flag, written, "--" + flag->name + (joined ? "=" : "") + value};
}

/// Makes the parser's options. A switch may have a value attached, like --json=false.
Poco::Util::OptionSet optionSet(std::vector<Flag> flags) {
    // A name comes before longer names that begin with it: else Poco calls it ambiguous.
    std::ranges::sort(flags, {}, &Flag::name);
    Poco::Util::OptionSet options;
    for (const Flag& flag : flags) {
        options.addOption(
            Poco::Util::Option(flag.name, "")
                .argument(flag.value.empty() ? "BOOL" : flag.value, !flag.value.empty())
                .repeatable(flag.repeats));
    }
    return options;
}

/// For the help page, which shows a flag and its value as users type them: `-o, --output FORMAT`.
Poco::Util::OptionSet helpSet(const CommandSpec& spec) {
    std::vector<Flag> flags = spec.flags;
    flags.push_back(
        {.name = "help", .letter = 'h', .help = "Show this page", .environment = false});
    Poco::Util::OptionSet options;
    for (const Flag& flag : flags) {
        std::string help = flag.help;
        if (flag.repeats) help += "; may be repeated";
        if (!flag.fallback.empty()) help += " (default " + flag.fallback + ")";
        if (flag.environment) help += " [" + environmentName(flag.name) + "]";
        const std::string letter = flag.letter == 0 ? "" : std::string(1, flag.letter);
        options.addOption(Poco::Util::Option(
            flag.name + (flag.value.empty() ? "" : " " + flag.value), letter, help));
    }
    return options;
}

/// The formatter leaves a space where it breaks a line.
std::string withoutTrailingSpaces(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '\n') out.erase(out.find_last_not_of(' ') + 1);
        out += c;
    }
    return out;
}

/// Throws UsageError for too few or too many arguments.
void requireCount(const CommandSpec& spec, const std::vector<std::string>& positional) {
    const std::string usage = "usage: " + spec.called() + " " + usageOf(spec);
    if (positional.size() < spec.least) {
        throw UsageError("`" + spec.called() + "` needs " + spec.arguments,
                         usage + "; see `" + spec.called() + " --help`");
    }
    if (positional.size() > spec.most) {
        throw UsageError("unexpected argument \"" + positional[spec.most] + "\"", usage);
    }
}

}  // namespace

Flag ownFlag(std::string name, char letter, std::string value, std::string help, bool repeats) {
    return Flag{.name = std::move(name),
                .letter = letter,
                .value = std::move(value),
                .help = std::move(help),
                .repeats = repeats,
                .environment = false};
}

std::string environmentName(std::string_view flag) {
    return "HEARTH_" + Poco::translate(Poco::toUpper(std::string(flag)), "-", "_");
}

std::optional<std::string> suggestion(std::string_view word,
                                      const std::vector<std::string>& candidates) {
    std::optional<std::string> best;
    std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
    for (const std::string& candidate : candidates) {
        const std::size_t distance = editDistance(word, candidate);
        if (distance < least) {
            least = distance;
            best = candidate;
        }
    }
    return best;
}

std::string anyOf(const std::vector<std::string>& words) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
        text += (i == 0 ? "" : i + 1 < words.size() ? ", " : " or ") + words[i];
    }
    return text;
}

UsageError unknownWord(const std::string& message, std::string_view word,
                       const std::vector<std::string>& known, const std::string& otherwise) {
    const auto near = suggestion(word, known);
    if (near) return UsageError(message, "did you mean " + *near + "?");
    return UsageError(message, otherwise.empty() ? "use " + anyOf(known) : otherwise);
}

Options Options::parse(const CommandSpec& spec, const std::vector<std::string>& arguments,
                       const Environment& environment) {
    const Poco::Util::OptionSet known = optionSet(spec.flags);
    Poco::Util::OptionProcessor processor(known);
    processor.setUnixStyle(true);
    Options options;
    options.environment_ = environment;
    std::optional<GivenFlag> waiting;  // its value is the next word
    bool ended = false;                // by `--`
    bool in_program = false;
    std::deque<std::string> words(arguments.begin(), arguments.end());
    while (!words.empty()) {
        std::string word = std::move(words.front());
        words.pop_front();
        if (!ended && !waiting && !in_program && beginsWithSwitch(spec, word)) {
            words.push_front("-" + word.substr(2));
            word.resize(2);
        }
        std::string name;
        std::string text;
        const bool flag_like = word.size() >= 2 && word[0] == '-';
        if (!ended && !waiting && !flag_like && options.positional_.size() == spec.program_at) {
            in_program = true;
        }
        if (in_program) {
            options.rest_.push_back(word);
            continue;
        }
        if (ended || waiting || word.size() < 2 || word[0] != '-') {
            if (!processor.process(word, name, text)) {
                (ended && spec.rest ? options.rest_ : options.positional_).push_back(word);
            }
        } else if (word == "--help" || word == "-h") {
            options.help_ = true;
            return options;
        } else if (word == "--") {
            ended = processor.process(word, name, text);
        } else {
            waiting = exactFlag(spec, word);
            try {
                processor.process(waiting->word, name, text);
            } catch (const Poco::Util::DuplicateOptionException&) {
                throw UsageError(waiting->written + " is given twice", "give it once");
            }
            if (waiting->word.find('=') == std::string::npos) text = "true";  // a switch
        }
        if (name.empty()) continue;
        options.take(*waiting->flag, text, waiting->written);
        waiting.reset();
    }
    if (waiting) {
        throw UsageError(waiting->written + " needs a value",
                         "write " + waiting->written + " " + waiting->flag->value);
    }
    for (const Flag& flag : spec.flags) {
        if (!flag.environment || options.given(flag.name)) continue;
        if (const auto text = environment(environmentName(flag.name))) {
            options.takeEnvironment(flag, *text);
        }
    }
    requireCount(spec, options.positional_);
    return options;
}

void Options::take(const Flag& flag, const std::string& text, const std::string& written) {
    LayeredValue value =
        given(flag.name).value_or(LayeredValue{{}, Source::Flag, "--" + flag.name});
    value.texts.push_back(text);
    if (flag.value.empty()) {
        const std::optional<bool> on = parseSwitch(text);
        if (!on) {
            throw UsageError(written + " is a switch and takes no value",
                             "write " + written + " alone");
        }
        value.texts = {*on ? "true" : "false"};
    }
    values_.put(flag.name, value);
}

void Options::takeEnvironment(const Flag& flag, const std::string& text) {
    if (text.empty()) return;
    LayeredValue value{{text}, Source::Env, environmentName(flag.name)};
    if (flag.value.empty()) {
        const std::optional<bool> on = parseSwitch(text);
        if (!on) {
            throw UsageError(value.origin + "=" + text + " is neither true nor false",
                             "set it to true or false, or unset it");
        }
        value.texts = {*on ? "true" : "false"};
    } else if (flag.repeats) {
        const Poco::StringTokenizer items(text, ",", Poco::StringTokenizer::TOK_IGNORE_EMPTY);
        value.texts.assign(items.begin(), items.end());
    }
    if (!value.texts.empty()) values_.put(flag.name, value);
}

std::optional<LayeredValue> Options::given(std::string_view flag) const {
    return values_.get(std::string(flag));
}

std::optional<std::string> Options::get(std::string_view flag) const {
    const auto value = given(flag);
    return value ? std::optional(value->texts.back()) : std::nullopt;
}

std::string Options::get(std::string_view flag, std::string_view fallback) const {
    return get(flag).value_or(std::string(fallback));
}

std::vector<std::string> Options::all(std::string_view flag) const {
    return given(flag).value_or(LayeredValue{}).texts;
}

bool Options::on(std::string_view flag) const {
    return get(flag) == "true";
}

Source Options::source(std::string_view flag) const {
    return given(flag).value_or(LayeredValue{}).source;
}

std::int64_t Options::number(std::string_view flag, std::int64_t fallback, std::int64_t least,
                             std::int64_t most) const {
    const std::optional<std::string> text = get(flag);
    if (!text) return fallback;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc{} || end != text->data() + text->size() || value < least ||
        value > most) {
        throw UsageError(
            "--" + std::string(flag) + " is \"" + *text + "\"",
            "give a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return value;
}

std::optional<std::chrono::milliseconds> Options::duration(std::string_view flag) const {
    const std::optional<std::string> text = get(flag);
    if (!text) return std::nullopt;
    const bool plain = !text->empty() && text->find_first_not_of("0123456789.") == text->npos;
    const auto value = parseDuration(plain ? *text + "s" : *text);
    if (!value) {
        throw UsageError("--" + std::string(flag) + " is \"" + *text + "\"",
                         "give seconds, or a duration such as 90s, 10m or 1h30m");
    }
    return value;
}

std::optional<std::uint64_t> Options::size(std::string_view flag) const {
    const std::optional<std::string> text = get(flag);
    if (!text) return std::nullopt;
    std::string exact = *text;
    if (!exact.empty() && std::string_view("kmgt").find(exact.back()) != std::string_view::npos) {
        exact.back() = static_cast<char>(exact.back() - 'a' + 'A');
        exact += 'i';
    }
    const auto value = parseBytes(exact);
    if (!value) {
        throw UsageError("--" + std::string(flag) + " \"" + *text + "\" is not a size",
                         "write 256Mi or 256m");
    }
    return value;
}

std::string helpText(const CommandSpec& spec) {
    const Poco::Util::OptionSet flags = helpSet(spec);
    Poco::Util::HelpFormatter formatter(flags);
    formatter.setUnixStyle(true);
    formatter.setWidth(kHelpWidth);
    formatter.setAutoIndent();
    formatter.setCommand(spec.called());
    formatter.setUsage(usageOf(spec));
    formatter.setHeader("\n" + spec.summary + (spec.details.empty() ? "" : "\n\n") + spec.details +
                        "\n\nflags:");
    formatter.setFooter(exitStatusText());
    std::ostringstream page;
    formatter.format(page);
    return withoutTrailingSpaces(page.str());
}

}  // namespace hearth::cli
