#pragma once

#include <Poco/ThreadPool.h>

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "metrics/Log.h"

namespace hearth::broker {

/// Threads for work that blocks, at a lower priority than claims and executions have. No more than
/// so many at a time, and no more for one tenant; what is beyond waits its turn, in order, so that
/// nothing is dropped. Thread-safe.
class ConnectionThreads {
public:
    ConnectionThreads(int most, int most_of_tenant, metrics::Log& log);
    /// As stop().
    ~ConnectionThreads();
    ConnectionThreads(const ConnectionThreads&) = delete;
    ConnectionThreads& operator=(const ConnectionThreads&) = delete;

    /// Runs it now or later; never blocks. False once stop() has been called.
    bool start(const std::string& tenant, std::function<void()> work);
    /// Forgets what waits and waits for what runs; whoever owns that work ends it first. Once.
    void stop();

private:
    class Worker;
    struct Task {
        std::string tenant;
        std::function<void()> work;
    };

    bool mayRun(const std::string& tenant) const;  // mutex_ held
    /// The next that may run now, its place taken; false if there is none.
    bool next(Task& task);
    void ended(const std::string& tenant);

    const int most_;
    const int most_of_tenant_;
    metrics::Log& log_;
    Poco::ThreadPool threads_;
    std::mutex mutex_;
    std::deque<Task> waiting_;              // guarded by mutex_
    std::map<std::string, int> of_tenant_;  // guarded by mutex_: what runs
    int running_ = 0;                       // guarded by mutex_
    bool stopping_ = false;                 // guarded by mutex_
};

}  // namespace hearth::broker
