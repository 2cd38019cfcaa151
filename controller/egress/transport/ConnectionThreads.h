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

namespace hearth::broker {

/// Threads for blocking work, at a lower priority than claims and executions. Their number is
/// bounded, in all and per tenant (TenantPlaces); further work waits, tenants in turn and each in
/// order, and none is dropped. Thread-safe.
class ConnectionThreads {
public:
    ConnectionThreads(int most, int most_of_tenant, metrics::Log& log);
    /// As stop().
    ~ConnectionThreads();
    ConnectionThreads(const ConnectionThreads&) = delete;
    ConnectionThreads& operator=(const ConnectionThreads&) = delete;

    /// Runs it now or later; never blocks. False once stop() has been called.
    bool start(const std::string& tenant, std::function<void()> work);
    /// Drops waiting work and waits for running work; the owner of that work ends it first. Once.
    void stop();

private:
    class Worker;
    struct Task {
        std::string tenant;
        std::function<void()> work;
        std::shared_ptr<void> place{};  ///< while it runs
    };

    /// Takes the next work that may run, with its place; false if there is none. Starts threads for
    /// the rest that may run.
    bool next(Task& task);
    void wait(Task task) HEARTH_REQUIRES(mutex_);
    /// The first that waits and may run now, its place taken.
    bool takeWaiting(Task& task) HEARTH_REQUIRES(mutex_);
    /// A thread for it, or it waits. False where it waits.
    bool launch(Task task) HEARTH_REQUIRES(mutex_);

    metrics::Log& log_;
    Poco::ThreadPool threads_;
    Mutex mutex_;
    TenantPlaces places_;
    /// One of each tenant, never empty.
    std::list<std::deque<Task>> waiting_ HEARTH_GUARDED_BY(mutex_);
    bool stopping_ HEARTH_GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::broker
