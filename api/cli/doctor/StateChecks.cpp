#include "api/cli/doctor/StateChecks.h"

#include <filesystem>

#include "api/serve/OfflineState.h"
#include "controller/journal/DatabaseFile.h"
#include "controller/store/StateFiles.h"
#include "controller/store/TokenHistory.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;
using controller::DatabaseFile;

Finding checkDatabase(const std::string& path) {
    const std::string folder = fs::path(path).parent_path().string();
    if (fs::exists(DatabaseFile::suspectPath(path))) {
        return {Level::Fail, "database", "the server found " + path + " damaged",
                "start the server again: it keeps a damaged one for inspection and begins anew"};
    }
    if (fs::exists(path)) {
        if (const auto fault = DatabaseFile::fault(path, false)) {
            return {Level::Fail, "database", path + " is damaged: " + *fault,
                    "put a copy back, or start the server: it keeps the file and begins anew, "
                    "without tokens and declared pools"};
        }
    }
    std::string names;
    for (const std::string& name : DatabaseFile::setAsideFiles(path)) {
        names += (names.empty() ? "" : ", ") + name;
    }
    if (!names.empty()) {
        return {Level::Warn, "database", "damaged files are kept in " + folder + ": " + names,
                "look into them with sqlite3 and .recover, then remove them"};
    }
    if (!fs::exists(path)) {
        return {Level::Warn, "database", path + " is missing: tokens and declared pools are lost",
                "put a copy back before the next start"};
    }
    return {Level::Ok, "database", path, ""};
}

/// Nullopt where callers are served.
std::optional<Finding> checkTokens(const ServeConfig& config) {
    const std::string& directory = *config.data_dir;
    const std::string history = controller::tokenHistoryPath(directory);
    // Opening the tokens would create a missing database.
    if (!fs::exists(history) || !fs::exists(controller::databasePath(directory)) ||
        !config.tokens.value.empty()) {
        return std::nullopt;
    }
    if (!controller::TokenHistory(history, false).had()) return std::nullopt;
    if (program::offlineTokens(directory)->configured()) return std::nullopt;
    const std::string lost = "this instance has had tokens and has none now: ";
    if (*config.open_loopback) {
        return Finding{Level::Warn, "tokens",
                       lost + "loopback callers are admin by " + config.open_loopback.origin,
                       "hearth token create --role admin, then serve without that setting"};
    }
    return Finding{Level::Fail, "tokens", lost + "callers are refused",
                   "hearth token create --role admin --offline, then start the server again"};
}

}  // namespace

Findings checkState(const ServeConfig& config) {
    Findings findings;
    try {
        if (!fs::exists(controller::secretKeyPath(*config.data_dir))) return findings;
        findings.push_back(checkDatabase(controller::databasePath(*config.data_dir)));
        if (findings.back().level == Level::Fail) return findings;
        if (auto tokens = checkTokens(config)) findings.push_back(std::move(*tokens));
    } catch (const std::exception& e) {
        findings.push_back({Level::Warn, "database",
                            std::string("its state is not known: ") + e.what(), "run it as root"});
    }
    return findings;
}

}  // namespace hearth::cli
