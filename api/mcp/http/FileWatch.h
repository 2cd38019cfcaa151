#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "base/Mutex.h"
#include "controller/Services.h"

namespace hearth::mcp {

/// The files of workspaces that streams are to hear of. Each is compared with what it was, by its
/// ETag, when something may have changed it: a call of the API, or the end of what ran there. One
/// thread, so that an agent that answers late delays no other notification. Thread-safe.
class FileWatch {
public:
    using Changed = std::function<void(const std::string& tenant, const std::string& uri)>;

    /// `services` outlive it. `changed` comes from its thread, and may block it for a moment.
    FileWatch(const controller::Services& services, Changed changed);
    FileWatch(const FileWatch&) = delete;
    FileWatch& operator=(const FileWatch&) = delete;

    /// Watches a file as long as the result is kept. Asks its workspace's agent. Null if the URI is
    /// no file's (fileOf), or the workspace has no more places.
    std::shared_ptr<void> watch(const controller::Principal& who, const std::string& uri);
    /// Something in the workspace may have changed its files; does not block.
    void look(const std::string& workspace) { state_->look(workspace); }

    /// Files of one workspace: each costs a question to its agent after each run.
    static constexpr std::size_t kMostOfWorkspace = 100;

private:
    struct Watched;
    /// Shared with the callbacks of foreign threads.
    struct State {
        Mutex mutex;
        StoppableCondition rung;
        std::set<std::string> due HEARTH_GUARDED_BY(mutex);  ///< workspaces
        /// By workspace.
        std::map<std::string, std::set<Watched*>> watched HEARTH_GUARDED_BY(mutex);
        void look(const std::string& workspace);
    };

    void loop(const std::stop_token& stop);
    void compare(const std::string& workspace);

    const controller::Services& services_;
    const Changed changed_;
    const std::shared_ptr<State> state_ = std::make_shared<State>();
    const std::shared_ptr<void> of_files_;
    std::jthread thread_;
};

}  // namespace hearth::mcp
