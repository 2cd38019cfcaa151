#include "controller/journal/DatabaseFile.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>

#include "base/Error.h"
#include "base/Fd.h"
#include "controller/journal/Database.h"

namespace hearth::controller {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostKept = 3;
constexpr std::string_view kDamaged = ".damaged-";
constexpr std::string_view kWal = "-wal";
constexpr std::string_view kSpare = ".spare";

/// A start checks only these tables: executions, their outputs and their ledger may be gigabytes.
constexpr std::array kChecked{
    "PRAGMA quick_check('tokens')",     "PRAGMA quick_check('pools')",
    "PRAGMA quick_check('meta')",       "PRAGMA quick_check('workspaces')",
    "PRAGMA quick_check('contexts')",   "PRAGMA quick_check('events')",
    "PRAGMA quick_check('quotas')",     "PRAGMA quick_check('usage')",
    "PRAGMA quick_check('gpu_leases')", "PRAGMA quick_check('revocations')"};

/// The result of checking a database.
struct Checked {
    std::optional<std::string> fault;
    bool all = true;  ///< no check was refused; a refusal is not damage
};

/// Records any result except "ok", and the error of a file that is no database. A busy file or a
/// full disk refuses checks; SQLITE_ERROR means that the file lacks the table: opening reports why.
void check(sqlite3* database, const char* pragma, Checked& out) {
    std::string said;
    const auto take = [](void* target, int count, char** texts, char**) {
        auto& text = *static_cast<std::string*>(target);
        if (text.empty() && count > 0 && texts[0] != nullptr) text = texts[0];
        return 0;
    };
    const int code = ::sqlite3_exec(database, pragma, take, &said, nullptr);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
        out.fault = ::sqlite3_errmsg(database);
    } else if (code != SQLITE_OK) {
        out.all = code == SQLITE_ERROR;
    } else if (!said.empty() && said != "ok") {
        out.fault = said;
    }
}

/// `alone`: on a full disk, which has no room for the file that readers share.
Checked check(const std::string& path, bool thorough, bool alone) {
    sqlite3* opened = nullptr;
    // Opened read-only, except that SQLite needs a write lock to be alone.
    const int code = ::sqlite3_open_v2(
        path.c_str(), &opened,
        (alone ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX,
        alone ? kInMemoryIndex : nullptr);
    const std::unique_ptr<sqlite3, decltype(&::sqlite3_close_v2)> database(opened,
                                                                           &::sqlite3_close_v2);
    if (code != SQLITE_OK) return {std::nullopt, false};  // opening it for writing reports why
    // Closing leaves the WAL unchanged, for the inspection of a damaged one.
    ::sqlite3_db_config(opened, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    ::sqlite3_busy_timeout(opened, kBusyTimeoutMs);
    Checked out;
    if (thorough) check(opened, "PRAGMA integrity_check(1)", out);
    for (const char* pragma : kChecked) {
        if (!out.fault && out.all && !thorough) check(opened, pragma, out);
    }
    return out;
}

bool holdsAnything(const std::string& path) {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(path, error);
    // A file that cannot be examined is not lost: opening it reports why.
    return error ? error != std::errc::no_such_file_or_directory : size > 0;
}

void syncFolderOf(const std::string& path) {
    const std::string folder = fs::path(path).parent_path().string();
    const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::fsync(fd.get()) != 0) throwErrno("sync", folder);
}

/// Returns a name that sorts after all earlier ones, whatever the clock says.
std::string nameAside(const std::string& path) {
    std::int64_t at = std::time(nullptr);
    for (const std::string& name : DatabaseFile::setAsideFiles(path)) {
        const std::size_t dash = name.rfind('-') + 1;
        std::int64_t taken = 0;
        const char* end = name.data() + name.size();
        const auto [stop, error] = std::from_chars(name.data() + dash, end, taken);
        if (error == std::errc{} && stop == end) at = std::max(at, taken + 1);
    }
    return path + std::string(kDamaged) + std::to_string(at);
}

}  // namespace

namespace {

/// Checks twice, because SQLite also reports a single failed read (a disk hiccup) as damage.
std::optional<std::string> lastingFault(const std::string& path, bool thorough) {
    const auto found = DatabaseFile::fault(path, thorough);
    return found ? DatabaseFile::fault(path, thorough) : std::nullopt;
}

}  // namespace

DatabaseFile::DatabaseFile(std::string path, bool expected, metrics::Log& log,
                           metrics::Metrics& metrics)
    : path_(std::move(path)), log_(log), metrics_(metrics) {
    const std::string suspect = suspectPath(path_);
    if (!holdsAnything(path_)) {
        begun_anew_ = true;
        // Left in place, this WAL could be applied to the new file.
        if (fs::exists(path_ + std::string(kWal)))
            setAside("the database is missing, its WAL is there");
        if (expected) {
            metrics_.databaseDamage("missing");
            log_.error("database.missing",
                       {{"path", path_},
                        {"lost", "tokens, declared pools and history"},
                        {"hint", "stop the server and put a copy back, or declare them anew"}});
        }
    } else if (std::error_code none; fs::is_directory(path_, none)) {
        setAside("it is a folder");
        begun_anew_ = true;
    } else if (const auto found = lastingFault(path_, fs::exists(suspect))) {
        setAside(*found);
        begun_anew_ = true;
    }
    std::error_code none;  // the next start checks again
    fs::remove(suspect, none);
    if (begun_anew_) fs::rename(path_ + std::string(kSpare), path_, none);
}

std::optional<std::string> DatabaseFile::fault(const std::string& path, bool thorough) {
    const Checked found = check(path, thorough, false);
    return found.fault || found.all ? found.fault : check(path, thorough, true).fault;
}

void DatabaseFile::keepSpare() const {
    const std::string spare = path_ + std::string(kSpare);
    const std::string begun = spare + "-begun";
    std::error_code none;
    if (fs::exists(spare, none)) return;
    try {
        for (const char* part : {"", "-wal", "-shm"}) fs::remove(begun + part, none);
        static_cast<void>(Database(begun));
        fs::rename(begun, spare);
    } catch (const std::exception& e) {  // the next start tries again
        log_.warn("database.no_spare", {{"error", e.what()}});
    }
}

void DatabaseFile::setAside(const std::string& why) {
    const std::string aside = nameAside(path_);
    // The database first: a WAL without a database is useless, but a database without its WAL could
    // bring back an older state, with tokens that were revoked since.
    if (fs::exists(path_)) fs::rename(path_, aside);
    if (fs::exists(path_ + std::string(kWal))) {
        fs::rename(path_ + std::string(kWal), aside + std::string(kWal));
    }
    fs::remove(path_ + "-shm");
    syncFolderOf(path_);
    metrics_.databaseDamage("start");
    log_.error(
        "database.damaged",
        {{"error", why},
         {"kept_as", aside},
         {"lost", "tokens, declared pools and history"},
         {"hint", "a new database is begun; look into the old one with sqlite3 and .recover"}});
    dropOldest();
}

void DatabaseFile::dropOldest() const {
    const std::vector<std::string> kept = setAsideFiles(path_);
    const fs::path folder = fs::path(path_).parent_path();
    for (std::size_t i = 0; i + kMostKept < kept.size(); ++i) {
        std::error_code none;  // one file too many does no harm
        fs::remove_all(folder / kept[i], none);
        fs::remove(folder / (kept[i] + std::string(kWal)), none);
    }
}

void DatabaseFile::damaged(std::string_view what) {
    metrics_.databaseDamage("running");
    if (told_.exchange(true)) return;
    log_.error("database.damaged",
               {{"error", what},
                {"path", path_},
                {"hint",
                 "start the server again: it checks the database, keeps a damaged one for "
                 "inspection and begins a new one"}});
    const std::string suspect = suspectPath(path_);
    const Fd fd(::open(suspect.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd || ::fsync(fd.get()) != 0) {
        log_.error("database.suspect_not_noted", {{"path", suspect}});
    }
}

std::vector<std::string> DatabaseFile::setAsideFiles(const std::string& path) {
    const fs::path whole(path);
    const std::string prefix = whole.filename().string() + std::string(kDamaged);
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(whole.parent_path())) {
        std::string name = entry.path().filename().string();
        if (!name.starts_with(prefix)) continue;
        if (name.ends_with(kWal)) name.resize(name.size() - kWal.size());
        names.push_back(std::move(name));
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

}  // namespace hearth::controller
