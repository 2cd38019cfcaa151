#include "pool/agent/program/interpreters/ShellScript.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <iterator>

#include "pool/agent/program/process/Spawn.h"

namespace hearth::agent::shell {

namespace {

constexpr const char* kShell = "/bin/sh";
/// A pipe holds 64 KiB, and each write to it takes at least a page.
constexpr std::size_t kMaxScript = 56 * 1'024;

/// Names, or prefixes ending in '*', of variables that a loader, a C library or the shell itself
/// reads when it starts, and not later or not in the same way.
constexpr std::array<std::string_view, 15> kReadAtStart{
    "LD_*", "MALLOC_*", "GLIBC_*", "LC_*",   "LANG", "LANGUAGE", "PWD", "OLDPWD",
    "PPID", "IFS",      "OPTIND",  "LINENO", "PS1",  "PS2",      "PS4"};

bool isReadAtStart(std::string_view name) {
    return std::any_of(kReadAtStart.begin(), kReadAtStart.end(), [name](std::string_view known) {
        if (known.back() != '*') return name == known;
        known.remove_suffix(1);
        return name.substr(0, known.size()) == known;
    });
}

bool isLetter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool isName(std::string_view name) {
    return !name.empty() && isLetter(name.front()) &&
           std::all_of(name.begin(), name.end(),
                       [](char c) { return isLetter(c) || (c >= '0' && c <= '9'); });
}

std::string_view nameOf(std::string_view entry) {
    return entry.substr(0, entry.find('='));
}

/// Sorts like Environment: A before A1, although '=' comes after '1'.
bool byName(const std::string& a, const std::string& b) {
    const std::string_view left = nameOf(a);
    const std::string_view right = nameOf(b);
    return left != right ? left < right : a < b;
}

void quote(std::string_view text, std::string& out) {
    out.push_back('\'');
    for (const char c : text) {
        if (c == '\'') {
            out += "'\\''";
        } else {
            out.push_back(c);
        }
    }
    out.push_back('\'');
}

}  // namespace

std::vector<std::string> parkedCommand() {
    return {kShell, "-i", "+m", "-c", "hearth"};
}

std::string parkedEnv() {
    return "ENV=/proc/self/fd/" + std::to_string(kChannelFd);
}

std::string_view opening() {
    static_assert(kChannelFd == 3);
    return "exec 3<&-;set +i;unset ENV _;echo ready\n";
}

std::string_view ready() {
    return "ready\n";
}

std::string_view proof() {
    return R"~(echo $0 $# "$-" "$(alias)" "${ENV-none}")~";
}

std::string_view proven() {
    return "/bin/sh 0   none\n";
}

bool script(const std::vector<std::string>& before, const std::vector<std::string>& wanted,
            std::string_view command, std::string& out) {
    if (command.find('\0') != std::string_view::npos) return false;
    std::vector<std::string> gone;
    std::vector<std::string> come;
    std::set_difference(before.begin(), before.end(), wanted.begin(), wanted.end(),
                        std::back_inserter(gone), byName);
    std::set_difference(wanted.begin(), wanted.end(), before.begin(), before.end(),
                        std::back_inserter(come), byName);
    out.clear();
    for (const std::string& entry : gone) {
        const std::string_view name = nameOf(entry);
        const bool replaced = std::any_of(
            come.begin(), come.end(), [name](const auto& other) { return nameOf(other) == name; });
        if (!replaced) return false;
    }
    for (const std::string& entry : come) {
        const std::string_view name = nameOf(entry);
        if (!isName(name) || isReadAtStart(name)) return false;
        out.append("export ").append(name).push_back('=');
        quote(std::string_view(entry).substr(name.size() + 1), out);
        out.push_back('\n');
        if (out.size() > kMaxScript) return false;
    }
    // The alias removes itself. The space separates the begin of the command from the `;`.
    std::string text("unalias hearth ; ");
    text += command;
    // In braces and without a newline, so that a script that is cut off does nothing.
    out += "{ alias hearth=";
    quote(text, out);
    out += ";}";
    return out.size() <= kMaxScript;
}

bool isKnown() {
    char path[PATH_MAX];
    if (realpath(kShell, path) == nullptr) return false;
    const std::string_view found(path);
    return found.substr(found.rfind('/') + 1) == "dash";
}

}  // namespace hearth::agent::shell
