#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "base/task/Executor.h"
#include "controller/Services.h"

namespace hearth::mcp {

/// The files of workspaces whose changes streams report. A file's ETag is compared with the last
/// one when something may have changed the file: a call of the API, or the end of an execution. The
/// comparisons are tasks of four threads, which wait for agents; a tenant's silent sandboxes delay
/// only its own notifications. Thread-safe.
class FileWatch {
public:
    using Changed = std::function<void(const std::string& tenant, const std::string& uri)>;

    /// `services` must outlive this object. Its threads call `changed`, which may block briefly.
    FileWatch(const controller::Services& services, Changed changed);

    /// Watches a file as long as the result is kept. Asks its workspace's agent. Null if the URI is
    /// not a file's (fileOf), or the workspace has no more places.
    std::shared_ptr<void> watch(const controller::Principal& who, const std::string& uri);
    /// Notes that the files of the workspace may have changed; does not block.
    void look(const std::string& workspace) { table_->look(workspace); }

    /// The most files of one workspace: each costs a question to its agent after each run.
    static constexpr std::size_t kMostOfWorkspace = 100;

private:
    struct Watched;
    struct Place;
    using PlacePtr = std::shared_ptr<Place>;

    /// Shared with the callbacks that other threads run.
    struct Table {
        Mutex mutex;
        /// By workspace and tenant.
        std::map<std::string, std::map<std::string, PlacePtr>> places HEARTH_GUARDED_BY(mutex);

        void look(const std::string& workspace);
    };

    /// Compares the files of a place after each look at it, until that is cancelled.
    Task<> follow(PlacePtr place);
    /// False if the agent did not answer.
    bool compare(const Place& place);

    const controller::Services& services_;
    const Changed changed_;
    const SystemClock clock_;
    const std::shared_ptr<Table> table_ = std::make_shared<Table>();
    const std::shared_ptr<void> of_files_;
    Executor executor_;
};

}  // namespace hearth::mcp
