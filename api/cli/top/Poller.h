#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <string>

#include "api/cli/top/TopState.h"
#include "base/Fd.h"

namespace hearth::cli {

/// Asks a server repeatedly, each time on a thread of its own, so that keys never wait for an
/// answer. A lost server is asked at growing intervals. For one thread, which has all signals
/// blocked that it handles.
class Poller {
public:
    using Steady = std::chrono::steady_clock;

    /// Throws UsageError for a wrong --url or --ca-file.
    explicit Poller(const Options& options);
    /// Ends a look under way.
    ~Poller() { stopping_ = true; }
    Poller(const Poller&) = delete;
    Poller& operator=(const Poller&) = delete;

    const Overview& overview() const { return overview_; }
    /// Begins the next look if it is due. Returns the time until it is; call it after every key.
    std::chrono::milliseconds follow(TopState& state);
    /// Readable when a look has ended; then take() its answers.
    int changed() const { return changed_.get(); }
    /// Throws the error that ended the look: RemoteError if the server refuses the caller.
    void take(TopState& state);

private:
    /// The work of one thread.
    struct Look {
        Overview overview;
        std::vector<std::string> endings;  ///< workspaces to end first
        bool reads = false;
        std::string remark = {};  ///< the result of an ending
        bool gone = false;        ///< the opened workspace has ended
    };
    void begin(std::vector<std::string> endings);
    void obey(Look& look);
    void read(Look& look);

    std::atomic<bool> stopping_{false};
    Remote remote_;  // used only by the look
    Overview overview_;
    Fd changed_;
    bool paused_ = false;
    bool at_once_ = true;
    unsigned failures_ = 0;
    Steady::time_point looked_{};
    std::future<Look> look_;  // last: its destructor waits for the thread
};

}  // namespace hearth::cli
