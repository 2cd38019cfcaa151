#pragma once

#include <Poco/ThreadPool.h>

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "base/Mutex.h"
#include "base/tenants/TenantPlaces.h"
#include "metrics/Log.h"

namespace hearth::egress {

/// Threads for blocking work, at a lower priority than claims and executions. Their number is
/// bounded, in total and per tenant (TenantPlaces). Further work waits and is never dropped;
/// tenants take turns, and a tenant's work keeps its order. Thread-safe.
class ConnectionThreads {
public:
    ConnectionThreads(int most, int most_of_tenant, metrics::Log& log);
    /// Calls stop().
    ~ConnectionThreads();
    ConnectionThreads(const ConnectionThreads&) = delete;
    ConnectionThreads& operator=(const ConnectionThreads&) = delete;

    /// Runs `work` now or later; never blocks. False after stop().
    bool start(const std::string& tenant, std::function<void()> work);
    /// Drops waiting work and waits for running work, which its owner ends first. Called once.
    void stop();

private:
    class Worker;
    struct Task {
        std::string tenant;
        std::function<void()> work;
        std::shared_ptr<void> place{};  ///< held while the task runs
    };

    /// Takes the next work that may run, with its place; false if there is none. Starts threads for
    /// other work that may run.
    bool next(Task& task);
    void wait(Task task) HEARTH_REQUIRES(mutex_);
    /// Takes the first waiting task that may run now, with its place.
    bool takeWaiting(Task& task) HEARTH_REQUIRES(mutex_);
    /// Starts a thread for the task. False if the task has to wait.
    bool launch(Task task) HEARTH_REQUIRES(mutex_);

    metrics::Log& log_;
    Poco::ThreadPool threads_;
    Mutex mutex_;
    TenantPlaces places_;
    /// One queue per tenant that has waiting work; no queue is empty.
    std::list<std::deque<Task>> waiting_ HEARTH_GUARDED_BY(mutex_);
    bool stopping_ HEARTH_GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::egress
