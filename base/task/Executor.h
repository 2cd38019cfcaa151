#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "base/task/Task.h"
#include "base/tenants/FairLine.h"
#include "base/tenants/TenantPlaces.h"

namespace hearth {

/// A few threads on which tasks go on. A task that waits holds none of them. Tenants take turns,
/// and none ever has all threads: a call that blocks for long delays only its own tenant.
/// Thread-safe. The destructor cancels the tasks that have not ended, and joins the threads.
class Executor {
public:
    /// `name`: of the threads, at most 15 characters. `clock` must outlive this object.
    Executor(const Clock& clock, std::size_t threads, const std::string& name);
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;
    ~Executor();

    /// Runs the task in the tenant's turns. It ends with its last line, or is cancelled when the
    /// returned object is destroyed: soon, in a thread of this object, before any turn. It catches
    /// what it throws: whatever leaves it is lost.
    [[nodiscard]] std::shared_ptr<void> start(const std::string& tenant, Task<> task);
    /// The same for a task that nobody cancels.
    void run(const std::string& tenant, Task<> task);

    /// The tasks that have not ended.
    std::size_t size() const;

private:
    struct Job;
    using JobPtr = std::shared_ptr<Job>;
    /// The part that wakes from outside use; it lives as long as one of them may come.
    struct Floor {
        mutable Mutex mutex;
        StoppableCondition changed;
        FairLine<JobPtr> line HEARTH_GUARDED_BY(mutex);                    ///< those that can go on
        std::deque<JobPtr> cancelled HEARTH_GUARDED_BY(mutex);             ///< to be destroyed
        std::set<JobPtr> jobs HEARTH_GUARDED_BY(mutex);                    ///< all of them
        std::multimap<TimePoint, JobPtr> alarms HEARTH_GUARDED_BY(mutex);  ///< of those that wait

        /// Puts a waiting job in line; one that runs goes on once more.
        void wake(const JobPtr& job) HEARTH_REQUIRES(mutex);
        void cancel(const JobPtr& job) HEARTH_REQUIRES(mutex);
        void wakeOverdue(TimePoint now) HEARTH_REQUIRES(mutex);
    };

    JobPtr put(const std::string& tenant, Task<> task);
    void work(const std::stop_token& stop);
    /// Returns the next job that may have a thread now, and its place.
    JobPtr next(std::shared_ptr<void>& place) HEARTH_REQUIRES(floor_->mutex);
    /// Runs the job until it waits or has ended.
    void step(const JobPtr& job);
    /// Leaves it to whatever it waits for.
    void park(const JobPtr& job, const WaitablePtr& wait);

    const Clock& clock_;
    TenantPlaces places_;
    const std::shared_ptr<Floor> floor_ = std::make_shared<Floor>();
    std::vector<std::jthread> threads_;
};

}  // namespace hearth
