#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace hearth::controller {

class Database;

/// One prepared statement, bound from left to right, then stepped. Not thread-safe; throws
/// std::runtime_error with SQLite's message (Error(DiskFull) where the disk is full).
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
    /// Creates the file and its tables if need be. A damaged file is moved aside (`.damaged-…`)
    /// and begun anew: it holds history, never a running workspace.
    explicit Database(const std::string& path);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    void execute(const char* sql);

private:
    friend class Statement;
    [[noreturn]] void fail(std::string_view operation) const;
    void open(const std::string& path);
    void close() noexcept;

    sqlite3* handle_ = nullptr;
};

}  // namespace hearth::controller
