#include "api/cli/completion/Completion.h"

#include <algorithm>
#include <sstream>

#include "api/command/Console.h"

namespace hearth::cli {
namespace {

std::vector<std::string> split(const std::string& text, char by) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, by);) parts.push_back(part);
    return parts;
}

/// The candidates for one description in CommandSpec::operands.
std::vector<Candidate> fromKind(const std::string& kind, const std::string& first,
                                const std::string& word, const Lookup& lookup) {
    if (kind.empty()) return {};
    if (kind == "@file" || kind == "@dir") return {{":" + kind.substr(1), ""}};
    if (kind == "@remote") {
        std::vector<Candidate> all = lookup(kind, word);
        if (word.find(':') == std::string::npos) all.push_back({":file", ""});
        return all;
    }
    if (kind == "@kind") {  // the first argument's kind
        return lookup("@" + (first.ends_with('s') ? first.substr(0, first.size() - 1) : first),
                      word);
    }
    if (kind.starts_with('@')) return lookup(kind, word);
    std::vector<Candidate> all;
    for (const std::string& choice : split(kind, '|')) all.push_back({choice, ""});
    return all;
}

std::vector<Candidate> fromFlag(const Flag& flag, const std::string& word, const Lookup& lookup) {
    std::vector<Candidate> all;
    for (const std::string& choice : flag.choices) {
        for (Candidate& one : fromKind(choice, "", word, lookup)) all.push_back(std::move(one));
    }
    if (!all.empty()) return all;
    if (flag.name == "workspace" || flag.name == "pool") return lookup("@" + flag.name, word);
    if (flag.value == "FILE") return {{":file", ""}};
    if (flag.value == "DIR" && flag.name != "cwd") return {{":dir", ""}};
    return {};
}

std::vector<Candidate> flagsOf(const CommandSpec& spec) {
    std::vector<Candidate> all;
    for (const Flag& flag : spec.flags) all.push_back({"--" + flag.name, flag.help});
    all.push_back({"--help", "Show the command's page"});
    return all;
}

std::vector<Candidate> commandNames(const std::vector<Command>& commands) {
    std::vector<Candidate> all;
    for (const Command& command : commands) {
        all.push_back({command.spec.name, command.spec.summary});
    }
    all.push_back({"help", "Say more about a command"});
    return all;
}

/// The facts that the words before the cursor tell about the word at the cursor.
struct Place {
    const Flag* value_of = nullptr;
    bool rest = false;  ///< after `--`
    std::vector<std::string> operands;
};

Place placeAfter(const CommandSpec& spec, const std::vector<std::string>& words) {
    Place place;
    for (const std::string& word : words) {
        if (place.rest) break;
        if (place.value_of != nullptr) {
            place.value_of = nullptr;
        } else if (word == "--") {
            place.rest = true;
        } else if (word.size() < 2 || word[0] != '-') {
            place.operands.push_back(word);
        } else if (word[1] == '-' || word.size() == 2) {
            const auto flag = std::ranges::find_if(spec.flags, [&word](const Flag& one) {
                return word == "--" + one.name ||
                       (one.letter != 0 && word == std::string("-") + one.letter);
            });
            if (flag != spec.flags.end() && !flag->value.empty()) place.value_of = &*flag;
        }
    }
    return place;
}

std::vector<Candidate> candidatesFor(const CommandSpec& spec,
                                     const std::vector<std::string>& before,
                                     const std::string& word, const Lookup& lookup) {
    const Place place = placeAfter(spec, before);
    if (place.rest) return {{":file", ""}};
    if (place.value_of != nullptr) return fromFlag(*place.value_of, word, lookup);
    if (word.starts_with("--") && word.find('=') != std::string::npos) {
        const std::string name = word.substr(2, word.find('=') - 2);
        const auto flag = std::ranges::find(spec.flags, name, &Flag::name);
        if (flag == spec.flags.end()) return {};
        std::vector<Candidate> all = fromFlag(*flag, word.substr(name.size() + 3), lookup);
        for (Candidate& one : all) {
            if (!one.word.starts_with(':')) one.word.insert(0, "--" + name + "=");
        }
        return all;
    }
    if (word.starts_with('-') && word != "-") return flagsOf(spec);
    if (place.operands.size() >= spec.most || spec.operands.empty()) return {};
    const std::size_t at = std::min(place.operands.size(), spec.operands.size() - 1);
    return fromKind(spec.operands[at], place.operands.empty() ? "" : place.operands[0], word,
                    lookup);
}

}  // namespace

std::vector<Candidate> completions(const std::vector<Command>& commands,
                                   const std::vector<std::string>& words, const Lookup& lookup) {
    if (words.empty()) return {};
    const std::string& word = words.back();
    std::vector<Candidate> all;
    if (words.size() == 1 || (words.size() == 2 && words[0] == "help")) {
        all = commandNames(commands);
    } else {
        for (const Command& command : commands) {
            if (command.spec.name != words[0]) continue;
            all = candidatesFor(command.spec, {words.begin() + 1, words.end() - 1}, word, lookup);
        }
    }
    std::erase_if(all, [&word](const Candidate& one) {
        // A name that a line cannot show is not offered.
        return !one.word.starts_with(':') &&
               (!one.word.starts_with(word) || printable(one.word) != one.word);
    });
    return all;
}

std::string completionScript(const std::string& shell) {
    // The words are taken from the whole line, because bash also splits at : and =.
    if (shell == "bash") {
        return R"sh(# hearth completion bash: put `source <(hearth completion bash)` into ~/.bashrc
_hearth() {
    local line=${COMP_LINE:0:COMP_POINT} words word prefix="" candidate
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    word=${words[${#words[@]} - 1]}
    [[ $word == *[:=]* ]] && prefix=${word%"${word##*[:=]}"}
    COMPREPLY=()
    while IFS= read -r candidate; do
        candidate=${candidate%%$'\t'*}
        case $candidate in
            :file) compopt -o filenames 2>/dev/null
                mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${word#"$prefix"}") ;;
            :dir) compopt -o filenames 2>/dev/null
                mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "${word#"$prefix"}") ;;
            *)  [[ $candidate == *[:/=] ]] && compopt -o nospace 2>/dev/null
                # Names of a workspace are anybody's: to the shell they are text.
                printf -v candidate %q "${candidate#"$prefix"}"
                COMPREPLY+=("$candidate") ;;
        esac
    done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
}
complete -F _hearth hearth
)sh";
    }
    if (shell == "zsh") {
        return R"sh(#compdef hearth
# hearth completion zsh: put `source <(hearth completion zsh)` into ~/.zshrc, behind compinit
_hearth() {
    local candidate
    local -a plain open
    for candidate in "${(@f)$("$words[1]" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        candidate=${candidate%%$'\t'*}
        case $candidate in
            :file) _files ;;
            :dir) _files -/ ;;
            *[:/=]) open+=("$candidate") ;;
            ?*) plain+=("$candidate") ;;
        esac
    done
    compadd -- $plain
    compadd -S '' -- $open
}
compdef _hearth hearth
)sh";
    }
    if (shell == "fish") {
        return R"sh(# hearth completion fish > ~/.config/fish/completions/hearth.fish
function __hearth_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    for candidate in ($words[1] __complete $words[2..-1] "$word" 2>/dev/null)
        switch $candidate
            case ':file*'
                __fish_complete_path "$word"
            case ':dir*'
                __fish_complete_directories "$word"
            case '*'
                printf '%s\n' $candidate
        end
    end
end
complete -c hearth -f -a '(__hearth_complete)'
)sh";
    }
    throw UsageError("no completion for \"" + shell + "\"", "use bash, zsh or fish");
}

}  // namespace hearth::cli
