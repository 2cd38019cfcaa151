#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "api/cli/top/OverviewReader.h"
#include "base/Fd.h"
#include "base/Mutex.h"

namespace hearth::cli {

/// Asks a server repeatedly on its own thread, so that keys never wait for an answer. A lost server
/// is asked at growing intervals. Its functions are thread-safe.
///
/// Construct it with all signals blocked that another thread handles.
class OverviewPoller {
public:
    using Steady = std::chrono::steady_clock;

    /// The newest answers.
    struct News {
        Overview overview;
        WorkspaceDetail detail;
        std::string failure = {};   ///< why the last look failed; empty: it succeeded
        Steady::time_point next{};  ///< the next look, after a failure
        std::string remark = {};    ///< the result of an order; returned once
        bool gone = false;          ///< the opened workspace has ended
    };

    /// Throws UsageError for a wrong --url or --ca-file.
    OverviewPoller(const Options& options, std::chrono::milliseconds interval);
    ~OverviewPoller();
    OverviewPoller(const OverviewPoller&) = delete;
    OverviewPoller& operator=(const OverviewPoller&) = delete;

    /// Readable when there is news.
    int changed() const { return changed_.get(); }
    /// Throws the error that ended the thread: RemoteError if the server refuses the caller.
    News take();

    void pace(std::chrono::milliseconds interval, bool paused);
    /// Follows this workspace instead of the overview; empty: the overview again.
    void follow(const std::string& workspace);
    void end(const std::string& workspace);

private:
    void run(const std::stop_token& stop) noexcept;
    /// Waits for the next look or order; false at the end.
    bool wait(const std::stop_token& stop);
    void obey();
    void look();
    void failed(const std::string& why);
    void tell() noexcept;
    std::chrono::milliseconds delay() const HEARTH_REQUIRES(mutex_);

    std::atomic<bool> stopping_{false};
    Remote remote_;          // used only by the thread
    OverviewReader reader_;  // likewise
    Fd changed_;
    Mutex mutex_;
    StoppableCondition order_;
    News news_ HEARTH_GUARDED_BY(mutex_);
    std::exception_ptr ended_ HEARTH_GUARDED_BY(mutex_);
    std::string followed_ HEARTH_GUARDED_BY(mutex_);
    std::vector<std::string> endings_ HEARTH_GUARDED_BY(mutex_);
    std::chrono::milliseconds interval_ HEARTH_GUARDED_BY(mutex_);
    bool paused_ HEARTH_GUARDED_BY(mutex_) = false;
    bool at_once_ HEARTH_GUARDED_BY(mutex_) = true;
    unsigned failures_ HEARTH_GUARDED_BY(mutex_) = 0;
    Steady::time_point looked_ HEARTH_GUARDED_BY(mutex_){};
    std::jthread thread_;
};

}  // namespace hearth::cli
