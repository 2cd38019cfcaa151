#include "controller/packages/PackageSpec.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/Error.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kMaxSpec = 300;
constexpr JsonLimits kOutcome{.bytes = 512U << 10U, .depth = 8, .values = 50'000, .members = 5'000};

bool isNameChar(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-';
}

bool isAlphanumeric(char c) {
    return isNameChar(c) && c != '.' && c != '_' && c != '-';
}

std::size_t endOfName(std::string_view text) {
    std::size_t end = 0;
    while (end < text.size() && isNameChar(text[end])) ++end;
    return end;
}

bool onlyOf(std::string_view text, std::string_view more) {
    return std::all_of(text.begin(), text.end(), [&](char c) {
        return isAlphanumeric(c) || more.find(c) != std::string_view::npos;
    });
}

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
    return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

/// Checks for ">=2, <3" or "(>=2)": each clause has an operator and one version.
bool areVersions(std::string_view text) {
    text = trimmed(text);
    if (text.starts_with('(') && text.ends_with(')')) text = text.substr(1, text.size() - 2);
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view clause = trimmed(text.substr(0, comma));
        text.remove_prefix(std::min(comma + 1, text.size()));
        const std::size_t version = std::min(clause.find_first_not_of("<>=!~"), clause.size());
        if (version == 0 || version > 3 || !onlyOf(trimmed(clause.substr(version)), ".*+!_-") ||
            version == clause.size()) {
            return false;
        }
    }
    return true;
}

/// Checks for: name [extras] version-clauses [; marker], as in PEP 508 without its "@ URL".
bool isPipSpec(std::string_view spec) {
    if (spec.empty() || !isAlphanumeric(spec.front())) return false;
    const std::size_t end = endOfName(spec);
    if (!isAlphanumeric(spec[end - 1])) return false;
    std::string_view rest = spec.substr(end);
    if (rest.starts_with('[')) {
        const std::size_t close = rest.find(']');
        if (close == std::string_view::npos || !onlyOf(rest.substr(1, close - 1), "._-, ")) {
            return false;
        }
        rest.remove_prefix(close + 1);
    }
    const std::size_t semicolon = rest.find(';');
    const std::string_view marker =
        semicolon == std::string_view::npos ? std::string_view{} : rest.substr(semicolon + 1);
    return areVersions(rest.substr(0, semicolon)) && onlyOf(marker, " <>=!~()'\".*+-_");
}

/// Checks for: [@scope/]name[@range], a range of an index: no URL, path or repository.
bool isNpmSpec(std::string_view spec) {
    if (spec.starts_with('@')) {
        const std::size_t slash = spec.find('/');
        if (slash == std::string_view::npos || slash == 1 || endOfName(spec.substr(1)) + 1 != slash)
            return false;
        spec.remove_prefix(slash + 1);
    }
    const std::size_t end = endOfName(spec);
    if (end == 0 || spec.front() == '.' || spec.front() == '-' || spec.front() == '_') return false;
    const std::string_view rest = spec.substr(end);
    return rest.empty() ||
           (rest.front() == '@' && rest.size() > 1 && onlyOf(rest.substr(1), " .<>=^~*|-+x"));
}

}  // namespace

std::optional<Json> packagesOutcome(std::string output) {
    while (!output.empty() && output.back() == '\n') output.pop_back();
    try {
        Json outcome = parseJson(output.substr(output.rfind('\n') + 1), kOutcome);
        if (outcome.is_object()) return outcome;
    } catch (const Error&) {
        // The program was ended before its report, or has never begun.
    }
    return std::nullopt;
}

std::string outcomeText(const Json& object, const char* key, std::size_t most) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) return "";
    return toUtf8(std::string_view(found->get_ref<const std::string&>()).substr(0, most));
}

std::optional<std::string> wrongSpec(const std::string& spec, PackageManager manager) {
    const bool sound =
        spec.size() <= kMaxSpec && ((manager != PackageManager::Npm && isPipSpec(spec)) ||
                                    (manager != PackageManager::Pip && isNpmSpec(spec)));
    if (sound) return std::nullopt;
    return "is not a package of an index: write a name and versions, such as numpy==2.1 or "
           "@scope/name@^1; options, URLs, paths and repositories are not allowed";
}

std::string notMirrored(egress::IndexKind kind) {
    return kind == egress::IndexKind::Npm
               ? "no npm registry is mirrored: start hearth serve with --mirror-npm"
               : "no Python index is mirrored: start hearth serve with --mirror-pypi";
}

std::map<std::string, std::string> shutWays(egress::NetworkMode network,
                                            const std::vector<egress::IndexKind>& mirrored) {
    std::map<std::string, std::string> shut;
    for (const auto& [which, kind] : {std::pair{PackageManager::Pip, egress::IndexKind::Pypi},
                                      std::pair{PackageManager::Npm, egress::IndexKind::Npm}}) {
        const char* const manager = kPackageManagers.of(which);
        if (network == egress::NetworkMode::None) {
            shut[manager] =
                "this workspace has no way to a package index; use a pool whose network is Mirror "
                "or Egress, or an image that has the package";
        } else if (network == egress::NetworkMode::Mirror &&
                   std::find(mirrored.begin(), mirrored.end(), kind) == mirrored.end()) {
            shut[manager] = notMirrored(kind);
        }
    }
    return shut;
}

std::string packageName(const std::string& spec) {
    const std::size_t begin = spec.starts_with('@') ? spec.find('/') + 1 : 0;
    return spec.substr(0, begin + endOfName(std::string_view(spec).substr(begin)));
}

}  // namespace hearth::controller
