#pragma once

#include <array>
#include <string>
#include <string_view>

#include "controller/journal/Database.h"

struct sqlite3_session;

namespace hearth::controller {

/// The tables that all replicas share. The other tables describe one machine.
inline constexpr std::array kSharedTables{"meta",       "pools",      "tokens",  "quotas",
                                          "workspaces", "executions", "outputs", "kept",
                                          "contexts",   "events",     "usage",   "revocations"};

/// Records the changes of one transaction to the shared tables, by SQLite's session extension
/// (https://www.sqlite.org/sessionintro.html). Made in the transaction and destroyed before the
/// next one. Not thread-safe; throws what Database throws.
class ChangeRecorder {
public:
    explicit ChangeRecorder(Database& database);
    ~ChangeRecorder();
    ChangeRecorder(const ChangeRecorder&) = delete;
    ChangeRecorder& operator=(const ChangeRecorder&) = delete;

    /// Returns a patchset of all changes so far: new rows and values, and the keys of removed rows.
    /// Empty if nothing has changed.
    std::string changes();

private:
    Database& database_;
    sqlite3_session* session_ = nullptr;
};

/// Applies changes that a ChangeRecorder recorded elsewhere, within the caller's transaction. A
/// change that is already there is no error: the end of a log may be applied again in its order.
void applyChanges(Database& database, std::string_view changes);

}  // namespace hearth::controller
