#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/Mutex.h"
#include "controller/Services.h"
#include "controller/queue/WorkLine.h"

namespace hearth::mcp {

/// The files of workspaces whose changes streams report. A file's ETag is compared with the last
/// one when something may have changed the file: a call of the API, or the end of an execution.
/// The four threads wait for agents. A tenant has at most one of them, so its silent sandboxes
/// delay only its own notifications. Thread-safe.
class FileWatch {
public:
    using Changed = std::function<void(const std::string& tenant, const std::string& uri)>;

    /// `services` must outlive this object. Its threads call `changed`, which may block briefly.
    FileWatch(const controller::Services& services, Changed changed);
    /// Ends the threads after their current questions to agents.
    ~FileWatch();
    FileWatch(const FileWatch&) = delete;
    FileWatch& operator=(const FileWatch&) = delete;

    /// Watches a file as long as the result is kept. Asks its workspace's agent. Null if the URI is
    /// not a file's (fileOf), or the workspace has no more places.
    std::shared_ptr<void> watch(const controller::Principal& who, const std::string& uri);
    /// Notes that the files of the workspace may have changed; does not block.
    void look(const std::string& workspace) { state_->look(workspace); }

    /// The most files of one workspace: each costs a question to its agent after each run.
    static constexpr std::size_t kMostOfWorkspace = 100;

private:
    struct Watched;
    /// A workspace that a tenant watches.
    struct Place {
        std::string tenant;
        std::string workspace;
        friend auto operator<=>(const Place&, const Place&) = default;
    };
    using Time = std::chrono::steady_clock::time_point;
    static constexpr controller::LaneRules kTurns{"files", 4, 3};

    /// Shared with the callbacks that other threads run.
    struct State {
        Mutex mutex;
        StoppableCondition rung;
        std::uint64_t rings HEARTH_GUARDED_BY(mutex) = 0;
        /// When a place is put in line; a place that is being compared stays here until done().
        std::map<Place, Time> due HEARTH_GUARDED_BY(mutex);
        controller::WorkLine<Place> line HEARTH_GUARDED_BY(mutex){kTurns};
        std::set<Place> in_line HEARTH_GUARDED_BY(mutex);
        std::set<Place> compared HEARTH_GUARDED_BY(mutex);  ///< being compared now
        /// The watched files, by workspace.
        std::map<std::string, std::set<Watched*>> watched HEARTH_GUARDED_BY(mutex);

        void look(const std::string& workspace);
        void ring() HEARTH_REQUIRES(mutex);
        /// The next place to compare, until done().
        std::optional<Place> next() HEARTH_REQUIRES(mutex);
        /// `again`: when to compare the place once more; nullopt: not by itself.
        void done(const Place& place, std::optional<Time> again);
        /// Returns the time until the next place is due.
        std::chrono::nanoseconds quiet() const HEARTH_REQUIRES(mutex);
    };

    void loop(const std::stop_token& stop);
    /// False if the agent did not answer.
    bool compare(const Place& place);

    const controller::Services& services_;
    const Changed changed_;
    const std::shared_ptr<State> state_ = std::make_shared<State>();
    const std::shared_ptr<void> of_files_;
    std::vector<std::jthread> threads_;
};

}  // namespace hearth::mcp
