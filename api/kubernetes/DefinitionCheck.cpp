#include "api/kubernetes/DefinitionCheck.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "api/kubernetes/Definitions.h"
#include "base/Version.h"
#include "pool/runtime/kubernetes/client/ObjectCache.h"

namespace hearth::kubernetes {
namespace {

namespace kube = pool::kubernetes;

constexpr const char* kServed = "/apis/hearth.dev/v1alpha1";
constexpr std::string_view kAll = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";
constexpr const char* kKeepsAll = "x-kubernetes-preserve-unknown-fields";
/// The most fields that are named; the others are counted.
constexpr std::size_t kNamed = 6;

/// Returns the mark among these categories; empty if there is none.
std::string markIn(const Json& categories) {
    if (!categories.is_array()) return "";
    for (const Json& each : categories) {
        if (each.is_string() && each.get<std::string>().starts_with(kMarkPrefix)) return each;
    }
    return "";
}

/// Returns the marks of the kinds that are served, by plural.
std::map<std::string, std::string> marksIn(const Json& served) {
    std::map<std::string, std::string> marks;
    const Json& resources = kube::valueAt(served, "/resources");
    if (!resources.is_array()) return marks;
    for (const Json& each : resources) {
        marks[kube::valueText(each, "/name")] = markIn(kube::valueAt(each, "/categories"));
    }
    return marks;
}

using VersionNumber = std::array<unsigned, 3>;

/// Reads "0.1.0", and "0-1-0-…", which follows the prefix of a mark. Zeros stand for missing
/// numbers.
VersionNumber versionIn(std::string_view text) {
    VersionNumber numbers{};
    for (unsigned& number : numbers) {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error != std::errc()) break;
        text.remove_prefix(std::min(static_cast<std::size_t>(end - text.data()) + 1, text.size()));
    }
    return numbers;
}

std::string textOf(const VersionNumber& version) {
    std::string text;
    for (const unsigned number : version) {
        text.append(text.empty() ? "" : ".").append(std::to_string(number));
    }
    return text;
}

void compare(const Json& clusters, const Json& ours, const std::string& path,
             std::vector<std::string>& lacking) {
    const bool keeps_all = clusters.value(kKeepsAll, false);
    const Json theirs = clusters.value("properties", Json::object());
    const Json fields = ours.value("properties", Json::object());
    for (const auto& [name, field] : fields.items()) {
        const std::string at = path.empty() ? name : std::string(path).append(".").append(name);
        if (const auto known = theirs.find(name); known != theirs.end()) {
            compare(*known, field, at, lacking);
        } else if (!keeps_all) {
            lacking.push_back(at);
        }
    }
    for (const auto& [key, suffix] :
         {std::pair{"items", "[]"}, std::pair{"additionalProperties", ".*"}}) {
        const auto our = ours.find(key);
        const auto their = clusters.find(key);
        if (our == ours.end() || their == clusters.end()) continue;
        if (our->is_object() && their->is_object()) compare(*their, *our, path + suffix, lacking);
    }
    const auto words = clusters.find("enum");
    if (words == clusters.end() || !ours.contains("enum")) return;
    for (const Json& word : ours["enum"]) {
        if (std::find(words->begin(), words->end(), word) != words->end()) continue;
        lacking.push_back(path + "=" + (word.is_string() ? word.get<std::string>() : word.dump()));
    }
}

/// Returns the schema of version kObjectVersion; null if there is none.
const Json& schemaOf(const Json& definition) {
    static const Json none;
    const Json& versions = kube::valueAt(definition, "/spec/versions");
    if (!versions.is_array()) return none;
    for (const Json& each : versions) {
        if (kube::valueText(each, "/name") == kObjectVersion) {
            return kube::valueAt(each, "/schema/openAPIV3Schema");
        }
    }
    return none;
}

std::string listed(const std::vector<std::string>& lacking) {
    std::string text;
    for (std::size_t i = 0; i < std::min(lacking.size(), kNamed); ++i) {
        text.append(i == 0 ? "" : ", ").append(lacking[i]);
    }
    if (lacking.size() > kNamed) {
        text.append(" and ").append(std::to_string(lacking.size() - kNamed)).append(" more");
    }
    return text;
}

/// Returns the fault of one definition; empty if it has none.
std::string troubleOf(const Json& ours, const std::string& mark, const ReadPath& read,
                      bool inside) {
    const bool same = mark == definitionMark(ours);
    if (same && !inside) return "";
    const VersionNumber program = versionIn(kHearthVersion);
    const VersionNumber theirs =
        versionIn(std::string_view(mark).substr(std::min(kMarkPrefix.size(), mark.size())));
    if (theirs > program) return "";
    const std::string name = kube::metadataText(ours, "name");
    const std::optional<Json> clusters = read(std::string(kAll) + name);
    const std::vector<std::string> lacking =
        clusters ? fieldsLackingIn(*clusters, ours) : std::vector<std::string>();
    if (same && lacking.empty()) return "";
    std::string words = name;
    if (same) {
        words += " was changed by hand";
    } else if (mark.empty()) {
        words += " is older than Hearth " + textOf(program);
    } else if (theirs < program) {
        words += " is of Hearth " + textOf(theirs) + ", and this is " + textOf(program);
    } else {
        words += " is not the one of this Hearth " + textOf(program);
    }
    return lacking.empty() ? words : words + " and lacks " + listed(lacking);
}

}  // namespace

std::vector<std::string> fieldsLackingIn(const Json& clusters, const Json& ours) {
    std::vector<std::string> lacking;
    const Json& theirs = schemaOf(clusters);
    if (!theirs.is_object()) return {std::string("version ") + kObjectVersion};
    compare(theirs, schemaOf(ours), "", lacking);
    return lacking;
}

DefinitionVerdict checkDefinitions(const ReadPath& read, bool inside) {
    const std::optional<Json> served = read(kServed);
    if (!served) return {};
    const std::map<std::string, std::string> marks = marksIn(*served);
    DefinitionVerdict verdict{.known = true};
    for (const Json& ours : {sandboxPoolDefinition(), workspaceDefinition()}) {
        const auto mark = marks.find(kube::valueText(ours, "/spec/names/plural"));
        const std::string words = mark == marks.end()
                                      ? kube::metadataText(ours, "name") + " is not there"
                                      : troubleOf(ours, mark->second, read, inside);
        if (words.empty()) continue;
        verdict.trouble += (verdict.trouble.empty() ? "" : "; ") + words;
    }
    if (!verdict.trouble.empty()) {
        verdict.trouble += ": the API server silently drops fields that it does not know";
    }
    return verdict;
}

void DefinitionWatch::look(const ReadPath& read) {
    const TimePoint now = clock_.now();
    if (looked_ && now < *looked_ + kLook) return;
    looked_ = now;
    DefinitionVerdict verdict = checkDefinitions(read, false);
    if (!verdict.known || verdict.trouble == trouble_) return;
    trouble_ = std::move(verdict.trouble);
    if (trouble_.empty()) {
        log_.info("kubernetes.definitions_current");
    } else {
        log_.warn("kubernetes.definitions_outdated", {{"why", trouble_}, {"hint", kDefinitionFix}});
    }
}

}  // namespace hearth::kubernetes
