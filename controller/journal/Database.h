#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace hearth::controller {

/// How long a statement waits for another process that has locked the file.
inline constexpr int kBusyTimeoutMs = 5000;

/// The schema of this version's databases (SQLite's user_version). A change of a table raises it:
/// no database is converted.
inline constexpr std::int64_t kSchema = 1;

/// The SQLite VFS that keeps the index of the WAL in memory instead of a file (-shm), which every
/// first opener writes anew: a full disk has no room for it. All connections of this process share
/// the index; no other process may open the database meanwhile. https://www.sqlite.org/vfs.html
inline constexpr const char* kInMemoryIndex = "unix-excl";

class Database;

/// The file is no database, or has impossible contents: DatabaseFile sets it aside. A full disk or
/// a busy file is not damage.
struct DamagedDatabase : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// One prepared statement, bound from left to right, then stepped. Not thread-safe. Throws
/// std::runtime_error with SQLite's message; Error(DiskFull) if the disk is full and
/// Error(Unavailable) if it fails or the file is busy: a retry may succeed after both.
class Statement {
public:
    Statement(Database& database, std::string_view sql);
    ~Statement();
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    Statement& bind(std::int64_t value);
    Statement& bind(std::string_view text);
    Statement& bindBlob(std::string_view bytes);
    Statement& bind(const std::optional<std::int64_t>& value);
    /// True while there is a row.
    bool step();
    /// Steps to the end.
    void run();

    std::int64_t integer(int column) const;
    std::string text(int column) const;
    bool null(int column) const;

private:
    Database& database_;
    sqlite3_stmt* statement_ = nullptr;
    int next_ = 1;
};

/// One connection to the data file, in WAL mode: committed data survives the process, and a reader
/// never waits for the writer. Not thread-safe.
class Database {
public:
    /// Creates the file and its tables if needed. Throws DamagedDatabase, here and in every later
    /// access, and std::runtime_error for another schema; the file is not changed. An existing
    /// database can be opened even on a full disk.
    explicit Database(const std::string& path);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    /// Opened on a full disk: the file is locked, so no other process can read it.
    bool exclusive() const { return exclusive_; }

    void execute(const char* sql);
    /// Ends a failed transaction. Does nothing without one, as SQLite ends some by itself.
    void rollBack() noexcept;

private:
    friend class Statement;
    friend class ChangeRecorder;
    friend void applyChanges(Database& database, std::string_view changes);
    [[noreturn]] void fail(std::string_view operation) const;
    /// For calls that return their error code and do not store it.
    [[noreturn]] void fail(std::string_view operation, int code) const;
    void open(const std::string& path, const char* vfs);
    void close() noexcept;

    sqlite3* handle_ = nullptr;
    bool exclusive_ = false;
};

}  // namespace hearth::controller
