#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/journal/Database.h"

namespace hearth::controller {

/// Prefix of the keys in the table `meta` for workspace labels; the workspace's id follows.
inline constexpr std::string_view kLabelsOf = "labels/";

/// Removes history that was kept long enough: executions an hour after their workspace's end (an
/// hour after their own if the workspace is unknown), workspaces and contexts after a day, all
/// events except the latest (oldest first, from the tenant that has most), labels of removed
/// workspaces. Finds rows by index, each once, and works in slices, so other writes wait for one
/// slice at most. Each tenant keeps only its latest ended workspaces and contexts, so no tenant can
/// fill the disk within the day. Not thread-safe.
class HistoryPruner {
public:
    /// How many ended rows are kept per tenant, and how many events in total. A context's row is
    /// larger, because it has a path.
    struct Most {
        std::int64_t workspaces = 100'000;
        std::int64_t contexts = 10'000;
        std::int64_t events = 10'000;
    };

    explicit HistoryPruner(std::size_t slice = 256) : HistoryPruner(slice, Most()) {}
    HistoryPruner(std::size_t slice, Most most)
        : slice_(slice),
          workspaces_{most.workspaces, {}},
          contexts_{most.contexts, {}},
          most_events_(most.events) {}

    /// Reads and removes at most a slice of rows, in the caller's transaction. True if there may be
    /// more. If the transaction fails, the caller restores an earlier copy of this object.
    bool prune(Database& database, std::int64_t now_ms);
    /// Called when a workspace of the tenant, or so many contexts, have ended, in the caller's
    /// transaction. Removes rows beyond Most, oldest first, a few at a time. Executions of a
    /// removed workspace are kept like those of an unknown one.
    void workspaceEnded(Database& database, const std::string& tenant);
    void contextsEnded(Database& database, const std::string& tenant, std::int64_t rows);
    /// Makes ended rows and events be counted again: after a rollback, or after some
    /// time.
    void recount();
    /// How many rows prune() has examined.
    std::size_t looked() const { return looked_; }

private:
    /// The place that the reading of an index has reached.
    struct Cursor {
        std::int64_t ended_ms = -1;
        std::string id;
    };
    /// The reading of the labels, once a day.
    struct LabelsRead {
        std::string key{kLabelsOf};
        std::int64_t next_ms = 0;
        bool first = true;
    };
    /// Counts of ended rows of one kind, by tenant; a count is loaded at the tenant's first end.
    struct Ended {
        std::int64_t most;
        std::map<std::string, std::int64_t> rows;
        void removed(const std::string& tenant);
    };

    void pruneWorkspaces(Database& database, std::int64_t before);
    void pruneEndedWork(Database& database, std::int64_t before);
    void pruneStrayWork(Database& database, std::int64_t before);
    void pruneContexts(Database& database, std::int64_t before);
    void pruneLabels(Database& database, std::int64_t now_ms);
    void pruneEvents(Database& database);
    /// Removes executions of one workspace within the slice; true if none are left.
    bool dropExecutions(Database& database, const std::string& workspace);
    /// Returns the oldest ended rows of a tenant beyond the limit, now that `rows` more ended.
    static std::vector<std::string> beyond(Database& database, const char* table, Ended& ended,
                                           const std::string& tenant, std::int64_t rows);
    /// Removes executions that pruneStrayWork() will not visit again; true if none stay.
    bool dropSeenExecutions(Database& database, const std::string& workspace);
    void dropExecution(Database& database, const std::string& id);
    std::int64_t left() const { return static_cast<std::int64_t>(slice_ - used_); }
    void use() { ++used_, ++looked_; }

    std::size_t slice_;
    std::size_t used_ = 0;    // in this slice
    std::size_t looked_ = 0;  // in total
    Ended workspaces_;
    Ended contexts_;
    std::int64_t most_events_;
    std::optional<std::map<std::string, std::int64_t>> events_;  // by tenant, once counted
    Cursor ended_;  // workspaces whose executions were removed
    Cursor stray_;  // executions whose workspace was searched for
    LabelsRead labels_;
};

}  // namespace hearth::controller
