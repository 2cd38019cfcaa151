#pragma once

#include <array>
#include <string>
#include <string_view>

#include "controller/journal/Database.h"

struct sqlite3_session;

namespace hearth::controller {

/// The tables that all replicas are to have. The others say what is on one machine.
inline constexpr std::array kSharedTables{"meta",       "pools",      "tokens",  "quotas",
                                          "workspaces", "executions", "outputs", "kept",
                                          "contexts",   "events",     "usage"};

/// Records what one transaction does to the shared tables, by SQLite's session extension
/// (https://www.sqlite.org/sessionintro.html). Begins with it and ends before the next one. Not
/// thread-safe; throws what Database throws.
class ChangeRecorder {
public:
    explicit ChangeRecorder(Database& database);
    ~ChangeRecorder();
    ChangeRecorder(const ChangeRecorder&) = delete;
    ChangeRecorder& operator=(const ChangeRecorder&) = delete;

    /// A patchset of all so far: new rows and values, and the keys of rows that have gone. Empty
    /// where nothing has changed.
    std::string changes();

private:
    Database& database_;
    sqlite3_session* session_ = nullptr;
};

/// Makes the changes here that a ChangeRecorder saw elsewhere, within the caller's transaction.
/// Those that are there already are no error: all of a log's end may be applied again in its order.
void applyChanges(Database& database, std::string_view changes);

}  // namespace hearth::controller
