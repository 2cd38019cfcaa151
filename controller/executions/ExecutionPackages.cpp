#include "controller/executions/ExecutionPackages.h"

#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Json.h"
#include "controller/packages/PackageSpec.h"
#include "pool/spec/LanguageName.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kMostPackagesTold = 256;
constexpr std::size_t kMostName = 300;
constexpr std::size_t kMostSaid = 8'000;

/// Returns the package manager: the language's, else chosen by the form of the names.
PackageManager managerOf(const std::string& language) {
    const std::string_view canonical = pool::canonicalLanguage(language);
    if (canonical == "python") return PackageManager::Pip;
    return canonical == "javascript" ? PackageManager::Npm : PackageManager::Auto;
}

/// Returns the members of `told[key]` that are texts, or objects with a text `inner`.
std::map<std::string, std::string> textsIn(const Json& told, const char* key,
                                           const char* inner = "") {
    std::map<std::string, std::string> texts;
    const auto found = told.find(key);
    if (found == told.end() || !found->is_object()) return texts;
    for (const auto& [name, value] : found->items()) {
        if (name.size() > kMostName || texts.size() >= kMostPackagesTold) continue;
        std::string text = value.is_object() ? outcomeText(value, inner, kMostName)
                                             : outcomeText(*found, name.c_str(), kMostName);
        if (!text.empty()) texts.emplace(toUtf8(name), std::move(text));
    }
    return texts;
}

std::string lastLineOf(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return toUtf8(text.substr(text.rfind('\n') + 1).substr(0, kMostOutcomeText));
}

}  // namespace

bool wantsPackages(const ExecutionRequest& request) {
    return !request.packages.empty() || request.auto_packages;
}

void checkPackages(const ExecutionRequest& request, const std::string& language) {
    Error wrong(ErrorCode::InvalidArgument, "some packages are not named correctly");
    for (std::size_t i = 0; i < request.packages.size(); ++i) {
        if (const auto why = wrongSpec(request.packages[i], managerOf(language))) {
            wrong.field("/packages/" + std::to_string(i), *why);
        }
    }
    if (!wrong.fields().empty()) throw wrong;
    const bool python = language.empty() || pool::canonicalLanguage(language) == "python";
    if (request.auto_packages && (!request.code || !python)) {
        throw Error(ErrorCode::InvalidArgument, "only imports of Python code can be detected")
            .field("/autoPackages", "goes with `code` in Python")
            .hint("name what is needed in `packages`");
    }
}

agent::PrepareWork packagesFirst(const ExecutionRequest& request, const std::string& language,
                                 const std::map<std::string, std::string>& shut) {
    checkPackages(request, language);
    const Json task{{"first", true},
                    {"manager", kPackageManagers.of(managerOf(language))},
                    {"install", request.packages},
                    {"check", Json::array()},
                    {"imports", request.auto_packages},
                    {"shut", shut}};
    return {{"python3", kPackagesProgram}, dumpJson(task), request.auto_packages};
}

RunPackages readPackages(const agent::Prepared& prepared) {
    RunPackages packages;
    packages.done = prepared.ok;
    packages.duration_ms = prepared.duration_ms;
    const std::optional<Json> told = packagesOutcome(prepared.output);
    if (!told) {
        packages.error = lastLineOf(prepared.errors);
        if (packages.error.empty()) packages.error = "it ended without an outcome";
        return packages;
    }
    packages.installed = textsIn(*told, "packages", "version");
    packages.not_installed = textsIn(*told, "unknown");
    packages.error = outcomeText(*told, "error");
    packages.said = outcomeText(*told, "said", kMostSaid);
    return packages;
}

std::optional<Json> packageError(const RunPackages& packages, ExecutionStatus status) {
    if (packages.done) return std::nullopt;
    std::string message = packages.error;
    if (status == ExecutionStatus::Timeout)
        message = "the time limit ended it while packages were being installed";
    if (status == ExecutionStatus::Oom)
        message = "it ran out of memory while packages were being installed";
    if (status == ExecutionStatus::Killed)
        message = "it was killed while packages were being installed";
    const std::string end = "PackageError: " + message;
    return Json{{"name", "PackageError"},
                {"message", message},
                {"traceback", packages.said.empty() ? end : packages.said + "\n" + end}};
}

}  // namespace hearth::controller
