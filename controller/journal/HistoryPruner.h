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

/// Key of a workspace's labels in the table `meta`, before its id.
inline constexpr std::string_view kLabelsOf = "labels/";

/// Removes history that has been kept long enough: executions an hour after their workspace's end
/// (an hour after their own where the workspace is unknown), workspaces and contexts after a day,
/// all events but the latest (of the tenant with most the oldest go first), labels of workspaces
/// that have gone. Finds them by index, each row once, and works in slices, so that what is written
/// meanwhile waits for one slice at most. Of one tenant's ended workspaces and contexts only the
/// latest are kept, so that nobody fills the disk within the day. Not thread-safe.
class HistoryPruner {
public:
    /// How many ended rows of one tenant are kept, and how many events of all. A context's row is
    /// larger: it has a path.
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

    /// Removes and looks at no more than a slice of rows, in the caller's transaction. True if
    /// there may be more. Where the transaction fails, a copy of before takes its place.
    bool prune(Database& database, std::int64_t now_ms);
    /// A workspace of the tenant has ended, or so many contexts have, in the caller's transaction.
    /// Removes what is now beyond Most, the oldest first, a few rows at a time. Executions of such
    /// a workspace are kept as those of an unknown one.
    void workspaceEnded(Database& database, const std::string& tenant);
    void contextsEnded(Database& database, const std::string& tenant, std::int64_t rows);
    /// Ended rows and events are counted anew: a transaction was rolled back, or some time has
    /// passed.
    void recount();
    /// Rows that prune() has looked at.
    std::size_t looked() const { return looked_; }

private:
    /// How far an index has been read.
    struct Cursor {
        std::int64_t ended_ms = -1;
        std::string id;
    };
    /// The labels' table is read once a day.
    struct LabelsRead {
        std::string key{kLabelsOf};
        std::int64_t next_ms = 0;
        bool first = true;
    };
    /// Ended rows of one kind, by tenant; loaded at a tenant's first end.
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
    /// Executions of one workspace, as many as are left of the slice; true if none stay.
    bool dropExecutions(Database& database, const std::string& workspace);
    /// The oldest ended rows of a tenant of which there are too many, now that `rows` more ended.
    static std::vector<std::string> beyond(Database& database, const char* table, Ended& ended,
                                           const std::string& tenant, std::int64_t rows);
    /// Those that pruneStrayWork() has passed and will not see again; true if none stay.
    bool dropSeenExecutions(Database& database, const std::string& workspace);
    void dropExecution(Database& database, const std::string& id);
    std::int64_t left() const { return static_cast<std::int64_t>(slice_ - used_); }
    void use() { ++used_, ++looked_; }

    std::size_t slice_;
    std::size_t used_ = 0;    // of this slice
    std::size_t looked_ = 0;  // of all
    Ended workspaces_;
    Ended contexts_;
    std::int64_t most_events_;
    std::optional<std::map<std::string, std::int64_t>> events_;  // by tenant, once counted
    Cursor ended_;  // workspaces whose executions have gone
    Cursor stray_;  // executions whose workspace was looked for
    LabelsRead labels_;
};

}  // namespace hearth::controller
