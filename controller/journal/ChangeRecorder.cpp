#include "controller/journal/ChangeRecorder.h"

#include <sqlite3.h>

#include <memory>

namespace hearth::controller {
namespace {

int settle(void* /*context*/, int conflict, sqlite3_changeset_iter* /*change*/) {
    // An existing row is replaced by the log's; a change to a missing row is omitted.
    const bool there = conflict == SQLITE_CHANGESET_DATA || conflict == SQLITE_CHANGESET_CONFLICT;
    return there ? SQLITE_CHANGESET_REPLACE : SQLITE_CHANGESET_OMIT;
}

}  // namespace

ChangeRecorder::ChangeRecorder(Database& database) : database_(database) {
    bool begun = ::sqlite3session_create(database.handle_, "main", &session_) == SQLITE_OK;
    for (const char* table : kSharedTables) {
        begun = begun && ::sqlite3session_attach(session_, table) == SQLITE_OK;
    }
    if (begun) return;
    ::sqlite3session_delete(session_);
    database.fail("record changes");
}

ChangeRecorder::~ChangeRecorder() {
    ::sqlite3session_delete(session_);
}

std::string ChangeRecorder::changes() {
    int size = 0;
    void* bytes = nullptr;
    const int code = ::sqlite3session_patchset(session_, &size, &bytes);
    const std::unique_ptr<void, void (*)(void*)> owned(bytes, &::sqlite3_free);
    if (code != SQLITE_OK) database_.fail("record changes", code);
    return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

void applyChanges(Database& database, std::string_view changes) {
    // The parameter is not const, but SQLite only reads the changes.
    const int code =
        ::sqlite3changeset_apply(database.handle_, static_cast<int>(changes.size()),
                                 const_cast<char*>(changes.data()), nullptr, &settle, nullptr);
    if (code != SQLITE_OK) database.fail("apply changes", code);
}

}  // namespace hearth::controller
