#include "api/cli/Options.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/Units.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kHelpColumn = 30;

const Flag* findFlag(const CommandSpec& spec, std::string_view name) {
    const auto it = std::ranges::find(spec.flags, name, &Flag::name);
    return it == spec.flags.end() ? nullptr : &*it;
}

const Flag* findLetter(const CommandSpec& spec, char letter) {
    const auto it = std::ranges::find(spec.flags, letter, &Flag::letter);
    return it == spec.flags.end() || letter == 0 ? nullptr : &*it;
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

UsageError unknownFlag(const CommandSpec& spec, std::string_view written, std::string_view name) {
    std::vector<std::string> names{"help"};
    for (const Flag& flag : spec.flags) names.push_back(flag.name);
    const auto near = suggestion(name, names);
    return UsageError(
        "unknown flag " + std::string(written),
        near ? "did you mean --" + *near + "?" : "see `hearth " + spec.name + " --help`");
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

std::string flagColumn(const Flag& flag) {
    std::string text = flag.letter != 0 ? std::string("  -") + flag.letter + ", " : "      ";
    text += "--" + flag.name;
    if (!flag.value.empty()) text += " " + flag.value;
    return text;
}

}  // namespace

std::string_view sourceName(Source source) noexcept {
    switch (source) {
        case Source::Default:
            return "default";
        case Source::File:
            return "file";
        case Source::Env:
            return "env";
        case Source::Flag:
            return "flag";
    }
    return "default";
}

std::string environmentName(std::string_view flag) {
    std::string name = "HEARTH_";
    for (const char c : flag) {
        name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    return name;
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

Options Options::parse(const CommandSpec& spec, const std::vector<std::string>& arguments,
                       const Environment& environment) {
    Options options;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& word = arguments[i];
        if (word == "--help" || word == "-h") {
            options.help_ = true;
            return options;
        }
        if (word == "--") {
            if (!spec.rest) {
                throw UsageError("`hearth " + spec.name + "` takes nothing after --",
                                 "see `hearth " + spec.name + " --help`");
            }
            options.rest_.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                 arguments.end());
            break;
        }
        if (word.size() < 2 || word[0] != '-') {
            options.positional_.push_back(word);
            continue;
        }
        const Flag* flag = nullptr;
        std::optional<std::string> attached;
        std::string as_written;
        if (word[1] == '-') {
            const std::size_t equals = word.find('=');
            as_written = word.substr(0, equals);
            if (equals != std::string::npos) attached = word.substr(equals + 1);
            flag = findFlag(spec, std::string_view(as_written).substr(2));
        } else {
            as_written = word.substr(0, 2);
            flag = findLetter(spec, word[1]);
            if (word.size() > 2) attached = word.substr(word[2] == '=' ? 3 : 2);
        }
        if (flag == nullptr) throw unknownFlag(spec, as_written, as_written.substr(2));
        if (flag->value.empty()) {
            const std::optional<bool> on = parseSwitch(attached.value_or("true"));
            if (!on) {
                throw UsageError(as_written + " is a switch and takes no value",
                                 "write " + as_written + " alone");
            }
            options.take(*flag, *on ? "true" : "false", as_written);
            continue;
        }
        if (!attached) {
            if (i + 1 == arguments.size()) {
                throw UsageError(as_written + " needs a value",
                                 "write " + as_written + " " + flag->value);
            }
            attached = arguments[++i];
        }
        options.take(*flag, *attached, as_written);
    }
    for (const Flag& flag : spec.flags) {
        if (!flag.environment || options.values_.contains(flag.name)) continue;
        if (const auto text = environment(environmentName(flag.name))) {
            options.takeEnvironment(flag, *text);
        }
    }
    if (options.positional_.size() < spec.least) {
        throw UsageError("`hearth " + spec.name + "` needs " + spec.arguments,
                         "see `hearth " + spec.name + " --help`");
    }
    if (options.positional_.size() > spec.most) {
        throw UsageError("unexpected argument \"" + options.positional_[spec.most] + "\"",
                         "usage: hearth " + spec.name + " [flags] " + spec.arguments);
    }
    return options;
}

void Options::take(const Flag& flag, std::string text, std::string_view as_written) {
    Value& value = values_[flag.name];
    if (!value.texts.empty() && !flag.repeats) {
        throw UsageError(std::string(as_written) + " is given twice", "give it once");
    }
    value.texts.push_back(std::move(text));
    value.source = Source::Flag;
}

void Options::takeEnvironment(const Flag& flag, const std::string& text) {
    if (text.empty()) return;
    Value value{{}, Source::Env};
    if (flag.value.empty()) {
        const std::optional<bool> on = parseSwitch(text);
        if (!on) {
            throw UsageError(environmentName(flag.name) + "=" + text + " is neither true nor false",
                             "set it to true or false, or unset it");
        }
        value.texts.emplace_back(*on ? "true" : "false");
    } else if (flag.repeats) {
        for (std::size_t start = 0; start <= text.size();) {
            const std::size_t end = std::min(text.find(',', start), text.size());
            if (end > start) value.texts.push_back(text.substr(start, end - start));
            start = end + 1;
        }
    } else {
        value.texts.push_back(text);
    }
    if (!value.texts.empty()) values_[flag.name] = std::move(value);
}

std::optional<std::string> Options::get(std::string_view flag) const {
    const auto it = values_.find(flag);
    if (it == values_.end()) return std::nullopt;
    return it->second.texts.back();
}

std::string Options::get(std::string_view flag, std::string_view fallback) const {
    return get(flag).value_or(std::string(fallback));
}

std::vector<std::string> Options::all(std::string_view flag) const {
    const auto it = values_.find(flag);
    return it == values_.end() ? std::vector<std::string>{} : it->second.texts;
}

bool Options::on(std::string_view flag) const {
    return get(flag) == "true";
}

Source Options::source(std::string_view flag) const {
    const auto it = values_.find(flag);
    return it == values_.end() ? Source::Default : it->second.source;
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
    const auto value = parseDuration(*text);
    if (!value) {
        throw UsageError("--" + std::string(flag) + " is \"" + *text + "\"",
                         "give a duration such as 90s, 10m or 1h30m");
    }
    return value;
}

std::string helpText(const CommandSpec& spec) {
    std::string text = "usage: hearth " + spec.name + (spec.flags.empty() ? "" : " [flags]");
    if (!spec.arguments.empty()) text += " " + spec.arguments;
    text += "\n\n" + spec.summary + "\n";
    if (!spec.details.empty()) text += "\n" + spec.details + "\n";
    text += "\nflags:\n";
    std::vector<Flag> flags = spec.flags;
    flags.push_back({.name = "help",
                     .letter = 'h',
                     .value = {},
                     .help = "Show this page",
                     .fallback = {},
                     .environment = false});
    for (const Flag& flag : flags) {
        std::string line = flagColumn(flag);
        if (line.size() + 2 > kHelpColumn) {
            line += "\n" + std::string(kHelpColumn, ' ');
        } else {
            line.resize(kHelpColumn, ' ');
        }
        line += flag.help;
        if (flag.repeats) line += "; may be repeated";
        if (!flag.fallback.empty()) line += " (default " + flag.fallback + ")";
        if (flag.environment) line += " [" + environmentName(flag.name) + "]";
        text += line + "\n";
    }
    text += "\nexit status: 0 ok, 1 failure, 2 wrong usage, 3 not found, 4 server unreachable\n";
    return text;
}

}  // namespace hearth::cli
