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

/// How long a statement waits for another process that has the file.
inline constexpr int kBusyTimeoutMs = 5000;

/// The VFS of SQLite with which the index of the WAL is in memory, not in a file (-shm) that every
/// first opener writes anew: a full disk has no room for it. All connections of this process share
/// it, and no other process may open the database meanwhile. https://www.sqlite.org/vfs.html
inline constexpr const char* kInMemoryIndex = "unix-excl";

class Database;

/// The file is no database, or holds what cannot be: DatabaseFile sets it aside. A full disk or a
/// busy file says nothing against the file.
struct DamagedDatabase : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// One prepared statement, bound from left to right, then stepped. Not thread-safe; throws
/// std::runtime_error with SQLite's message; Error(DiskFull) where the disk is full and
/// Error(Unavailable) where it fails or the file is busy: both may pass.
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

/// One connection to the data file: WAL, so that what was committed survives the process, and a
/// reader never waits for the writer. Not thread-safe.
class Database {
public:
    /// Creates the file and its tables if need be. Throws DamagedDatabase, here and in every later
    /// access; the file stays as it is. A full disk keeps no database that is there from being
    /// opened.
    explicit Database(const std::string& path);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    /// Opened on a full disk: the file is held so that no other process can read it.
    bool exclusive() const { return exclusive_; }

    void execute(const char* sql);
    /// Ends a transaction that failed; none is fine, as SQLite ends some by itself.
    void rollBack() noexcept;

private:
    friend class Statement;
    friend class ChangeRecorder;
    friend void applyChanges(Database& database, std::string_view changes);
    [[noreturn]] void fail(std::string_view operation) const;
    /// For calls that only return their error.
    [[noreturn]] void fail(std::string_view operation, int code) const;
    void open(const std::string& path, const char* vfs);
    void close() noexcept;

    sqlite3* handle_ = nullptr;
    bool exclusive_ = false;
};

}  // namespace hearth::controller
