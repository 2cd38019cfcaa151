#include "controller/journal/Database.h"

#include <sqlite3.h>

#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <string>

#include "base/Error.h"

namespace hearth::controller {
namespace {

constexpr const char* kSettings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL";
constexpr const char* kTables = R"(
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pools (
    name TEXT PRIMARY KEY, document TEXT NOT NULL, generation INTEGER NOT NULL,
    resource_version INTEGER NOT NULL, created_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, tenant TEXT NOT NULL, role INTEGER NOT NULL,
    hash TEXT NOT NULL, created_ms INTEGER NOT NULL, expires_ms INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS revocations (
    place INTEGER PRIMARY KEY, session TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL,
    expiry_ms INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS quotas (tenant TEXT PRIMARY KEY, document TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS gpus (
    uuid TEXT PRIMARY KEY, clean_in TEXT NOT NULL, condemned TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS gpu_leases (
    uuid TEXT NOT NULL, sandbox TEXT NOT NULL, pool TEXT NOT NULL, shared INTEGER NOT NULL,
    parent TEXT NOT NULL, PRIMARY KEY (uuid, sandbox)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS workspaces (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, pool TEXT NOT NULL, sandbox TEXT NOT NULL,
    claim_id TEXT NOT NULL, fingerprint TEXT NOT NULL, name TEXT NOT NULL,
    created_ms INTEGER NOT NULL, ended_ms INTEGER, reason TEXT, story TEXT) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS workspaces_by_claim ON workspaces (claim_id);
CREATE INDEX IF NOT EXISTS workspaces_by_end ON workspaces (ended_ms, id);
CREATE INDEX IF NOT EXISTS workspaces_ended_of ON workspaces (tenant, ended_ms, id)
    WHERE ended_ms IS NOT NULL;
CREATE TABLE IF NOT EXISTS executions (
    id TEXT PRIMARY KEY, workspace TEXT NOT NULL, tenant TEXT NOT NULL, fingerprint TEXT NOT NULL,
    document TEXT NOT NULL, output BLOB NOT NULL, ended_ms INTEGER NOT NULL,
    started_at TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS executions_by_end ON executions (ended_ms, id, workspace);
CREATE INDEX IF NOT EXISTS executions_listed
    ON executions (workspace, ended_ms, id, tenant, started_at);
CREATE TABLE IF NOT EXISTS outputs (
    execution TEXT NOT NULL, kind INTEGER NOT NULL, place INTEGER NOT NULL, bytes BLOB NOT NULL,
    PRIMARY KEY (execution, kind, place));
CREATE TABLE IF NOT EXISTS kept (
    execution TEXT PRIMARY KEY, tenant TEXT NOT NULL, bytes INTEGER NOT NULL,
    shed INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS kept_by_tenant ON kept (shed, tenant, bytes);
CREATE TABLE IF NOT EXISTS contexts (
    id TEXT PRIMARY KEY, workspace TEXT NOT NULL, tenant TEXT NOT NULL, language TEXT NOT NULL,
    name TEXT NOT NULL, cwd TEXT NOT NULL, fingerprint TEXT NOT NULL, created_ms INTEGER NOT NULL,
    ended_ms INTEGER, reason TEXT) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS contexts_by_workspace ON contexts (workspace);
CREATE INDEX IF NOT EXISTS contexts_by_end ON contexts (ended_ms);
CREATE INDEX IF NOT EXISTS contexts_ended_of ON contexts (tenant, ended_ms, id)
    WHERE ended_ms IS NOT NULL;
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, type TEXT NOT NULL, resource TEXT NOT NULL,
    pool TEXT NOT NULL, tenant TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL,
    trace TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS events_of ON events (tenant);
CREATE TABLE IF NOT EXISTS usage (
    hour INTEGER NOT NULL, tenant TEXT NOT NULL, pool TEXT NOT NULL, claims INTEGER NOT NULL,
    sandbox_ms INTEGER NOT NULL, cpu_us INTEGER NOT NULL, gpu_ms INTEGER NOT NULL,
    memory_kib_secs INTEGER NOT NULL, egress_bytes INTEGER NOT NULL,
    PRIMARY KEY (tenant, hour, pool)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shared_place (
    one INTEGER PRIMARY KEY, term INTEGER NOT NULL, segment INTEGER NOT NULL,
    bytes INTEGER NOT NULL);
)";

/// The schema of a database, 0 without tables.
std::int64_t schemaOf(Database& database, const std::string& path) {
    Statement row(database,
                  "SELECT user_version, (SELECT count(*) FROM sqlite_schema) "
                  "FROM pragma_user_version");
    row.step();
    const std::int64_t schema = row.integer(0);
    if (schema == kSchema || (schema == 0 && row.integer(1) == 0)) return schema;
    throw std::runtime_error("the data file " + path + " has schema " + std::to_string(schema) +
                             ", and this Hearth reads only schema " + std::to_string(kSchema) +
                             ": move it and " + path +
                             ".spare away to begin a new one, or start with another --data-dir");
}

/// True also if one of the database's own files could not grow.
bool isFull(sqlite3* handle, int code) {
    if (code == SQLITE_FULL) return true;
    if (code != SQLITE_IOERR && code != SQLITE_CANTOPEN) return false;
    const int error = ::sqlite3_system_errno(handle);
    return error == ENOSPC || error == EDQUOT;
}

/// True if the same statement may succeed later.
bool mayPass(int code) {
    return code == SQLITE_IOERR || code == SQLITE_BUSY || code == SQLITE_LOCKED ||
           code == SQLITE_CANTOPEN || code == SQLITE_READONLY || code == SQLITE_NOMEM ||
           code == SQLITE_PROTOCOL;
}

}  // namespace

Statement::Statement(Database& database, std::string_view sql) : database_(database) {
    if (::sqlite3_prepare_v2(database_.handle_, sql.data(), static_cast<int>(sql.size()),
                             &statement_, nullptr) != SQLITE_OK) {
        database_.fail("prepare");
    }
}

Statement::~Statement() {
    ::sqlite3_finalize(statement_);
}

Statement& Statement::bind(std::int64_t value) {
    if (::sqlite3_bind_int64(statement_, next_++, value) != SQLITE_OK) database_.fail("bind");
    return *this;
}

Statement& Statement::bind(std::string_view text) {
    if (::sqlite3_bind_text(statement_, next_++, text.data(), static_cast<int>(text.size()),
                            SQLITE_TRANSIENT) != SQLITE_OK) {
        database_.fail("bind");
    }
    return *this;
}

Statement& Statement::bindBlob(std::string_view bytes) {
    if (::sqlite3_bind_blob64(statement_, next_++, bytes.data(), bytes.size(), SQLITE_TRANSIENT) !=
        SQLITE_OK) {
        database_.fail("bind");
    }
    return *this;
}

Statement& Statement::bind(const std::optional<std::int64_t>& value) {
    if (value) return bind(*value);
    if (::sqlite3_bind_null(statement_, next_++) != SQLITE_OK) database_.fail("bind");
    return *this;
}

bool Statement::step() {
    const int code = ::sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) database_.fail("step");
    return false;
}

void Statement::run() {
    while (step()) {
    }
}

std::int64_t Statement::integer(int column) const {
    return ::sqlite3_column_int64(statement_, column);
}

std::string Statement::text(int column) const {
    // column_blob must come before column_bytes, as SQLite documents.
    const void* data = ::sqlite3_column_blob(statement_, column);
    const int size = ::sqlite3_column_bytes(statement_, column);
    return data == nullptr
               ? std::string()
               : std::string(static_cast<const char*>(data), static_cast<std::size_t>(size));
}

bool Statement::null(int column) const {
    return ::sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

Database::Database(const std::string& path) {
    try {
        open(path, nullptr);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::DiskFull) throw;
        open(path, kInMemoryIndex);
        exclusive_ = true;
    }
}

Database::~Database() {
    close();
}

void Database::open(const std::string& path, const char* vfs) {
    constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                           SQLITE_OPEN_URI;  // for the copies that are attached
    if (::sqlite3_open_v2(path.c_str(), &handle_, kFlags, vfs) != SQLITE_OK) {
        close();
        throw std::runtime_error("cannot open the data file " + path);
    }
    ::sqlite3_busy_timeout(handle_, kBusyTimeoutMs);
    try {
        const std::int64_t schema = schemaOf(*this, path);
        execute(kSettings);
        if (schema == 0) {  // a crash leaves all tables or none
            const std::string tables = std::string("BEGIN IMMEDIATE;") + kTables +
                                       "PRAGMA user_version = " + std::to_string(kSchema) +
                                       "; COMMIT";
            execute(tables.c_str());
        }
    } catch (...) {
        close();
        throw;
    }
}

void Database::close() noexcept {
    ::sqlite3_close_v2(handle_);
    handle_ = nullptr;
}

void Database::execute(const char* sql) {
    if (::sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail("execute");
}

void Database::rollBack() noexcept {
    if (handle_ == nullptr || ::sqlite3_get_autocommit(handle_) != 0) return;
    // If even that fails, the next BEGIN reports it.
    static_cast<void>(::sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr));
}

void Database::fail(std::string_view operation) const {
    fail(operation, handle_ == nullptr ? SQLITE_OK : ::sqlite3_errcode(handle_));
}

void Database::fail(std::string_view operation, int code) const {
    std::string message = "data file: " + std::string(operation) + ": ";
    if (handle_ == nullptr) {
        message += "closed";
    } else {
        const bool last = code == ::sqlite3_errcode(handle_);
        message += last ? ::sqlite3_errmsg(handle_) : ::sqlite3_errstr(code);
    }
    code &= 0xFF;
    if (isFull(handle_, code)) {
        throw Error(ErrorCode::DiskFull, "the disk of the data directory is full")
            .hint("an operator must free space there");
    }
    if (mayPass(code)) {
        throw Error(ErrorCode::Unavailable, message)
            .hint("an operator looks after the disk of the data directory")
            .retryAfter(std::chrono::seconds(5));
    }
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) throw DamagedDatabase(message);
    throw std::runtime_error(message);
}

}  // namespace hearth::controller
