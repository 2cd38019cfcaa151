#include "api/cli/doctor/StateChecks.h"

#include <filesystem>

#include "api/serve/OfflineState.h"
#include "base/Units.h"
#include "controller/journal/DatabaseFile.h"
#include "controller/journal/DiskReserve.h"
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
                "start the server again: it keeps the damaged file for inspection and begins a new "
                "one"};
    }
    if (fs::exists(path)) {
        if (const auto fault = DatabaseFile::fault(path, false)) {
            return {Level::Fail, "database", path + " is damaged: " + *fault,
                    "restore a copy, or start the server: it keeps the file and begins a new one, "
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
                "restore a copy before the next start"};
    }
    return {Level::Ok, "database", path, ""};
}

/// Nullopt if callers are served.
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
    const std::string lost = "this instance had tokens and has none now: ";
    if (*config.open_loopback) {
        return Finding{Level::Warn, "tokens",
                       lost + "loopback callers are admin by " + config.open_loopback.origin,
                       "hearth token create --role admin, then serve without that setting"};
    }
    return Finding{Level::Fail, "tokens", lost + "callers are refused",
                   "hearth token create --role admin --offline, then start the server again"};
}

/// Nullopt if the disk's space cannot be read.
std::optional<Finding> checkDisk(const ServeConfig& config) {
    const std::string& directory = *config.data_dir;
    const std::optional<controller::DiskSpace> disk = controller::diskSpaceAt(directory);
    const std::optional<std::uint64_t> asked = parseBytes(*config.state_reserve);
    if (!disk || !asked) return std::nullopt;
    const std::uint64_t reserve = controller::DiskReserve::of(*disk, *asked);
    const auto rounded = [](std::uint64_t bytes) { return formatBytes(bytes >> 20U << 20U); };
    const std::string found = rounded(disk->free) + " of " + rounded(disk->capacity) +
                              " are free on the disk of " + directory;
    if (disk->free >= reserve) return Finding{Level::Ok, "disk", found, ""};
    return Finding{Level::Fail, "disk",
                   found + ", less than the " + rounded(reserve) + " that the state needs",
                   "free disk space: until then no sandbox is made and nothing large is stored"};
}

}  // namespace

Findings checkState(const ServeConfig& config) {
    Findings findings;
    try {
        if (!fs::exists(controller::secretKeyPath(*config.data_dir))) return findings;
        if (auto disk = checkDisk(config)) findings.push_back(std::move(*disk));
        findings.push_back(checkDatabase(controller::databasePath(*config.data_dir)));
        if (findings.back().level == Level::Fail) return findings;
        if (auto tokens = checkTokens(config)) findings.push_back(std::move(*tokens));
    } catch (const std::exception& e) {
        findings.push_back({Level::Warn, "database",
                            std::string("its state cannot be read: ") + e.what(),
                            "run it as root"});
    }
    return findings;
}

}  // namespace hearth::cli
