#include "base/task/Executor.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace hearth {
namespace {

/// The longest sleep: a simulated clock wakes nobody.
constexpr std::chrono::nanoseconds kLookAgain = std::chrono::seconds(1);

}  // namespace

/// A task on its way. Its thread has the task; the floor's mutex guards the rest.
struct Executor::Job {
    enum class State : std::uint8_t { InLine, Running, Waiting };

    Job(std::string who, Task<> work) : tenant(std::move(who)), task(std::move(work)) {}

    const std::string tenant;
    std::optional<Task<>> task;
    std::shared_ptr<void> subscription;  ///< to what the task waits for
    State state = State::InLine;
    bool again = false;  ///< it was woken while it ran
    bool cancelled = false;
    std::optional<std::multimap<TimePoint, JobPtr>::iterator> alarm;  ///< while it waits
};

Executor::Executor(const Clock& clock, std::size_t threads, const std::string& name)
    : clock_(clock), places_(threads, std::max<std::size_t>(threads - 1, 1)) {
    for (std::size_t i = 0; i < threads; ++i) {
        threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
        ::pthread_setname_np(threads_.back().native_handle(), name.c_str());
    }
}

Executor::~Executor() {
    for (std::jthread& thread : threads_) thread.request_stop();
    threads_.clear();
    std::set<JobPtr> left;
    {
        const MutexLock lock(floor_->mutex);
        left.swap(floor_->jobs);
        for (const JobPtr& job : left) {  // a wake finds nothing to do any more
            job->alarm.reset();
            job->state = Job::State::Running;
        }
        floor_->alarms.clear();
        floor_->line = {};
        floor_->cancelled.clear();
    }
    for (const JobPtr& job : left) {  // a wake may hold it still
        job->subscription.reset();
        job->task.reset();
    }
}

Executor::JobPtr Executor::put(const std::string& tenant, Task<> task) {
    auto job = std::make_shared<Job>(tenant, std::move(task));
    const MutexLock lock(floor_->mutex);
    floor_->jobs.insert(job);
    floor_->line.push(tenant, job);
    floor_->changed.notifyOne();
    return job;
}

void Executor::run(const std::string& tenant, Task<> task) {
    put(tenant, std::move(task));
}

std::shared_ptr<void> Executor::start(const std::string& tenant, Task<> task) {
    JobPtr job = put(tenant, std::move(task));
    Job* const started = job.get();
    return {started, [floor = std::weak_ptr(floor_), job = std::move(job)](Job*) {
                const std::shared_ptr<Floor> alive = floor.lock();
                if (!alive) return;
                const MutexLock lock(alive->mutex);
                alive->cancel(job);
            }};
}

std::size_t Executor::size() const {
    const MutexLock lock(floor_->mutex);
    return floor_->jobs.size();
}

void Executor::Floor::wake(const JobPtr& job) {
    if (job->state == Job::State::Running) job->again = true;
    if (job->state != Job::State::Waiting) return;
    if (job->alarm) alarms.erase(*std::exchange(job->alarm, std::nullopt));
    job->state = Job::State::InLine;
    if (job->cancelled) {
        cancelled.push_back(job);
    } else {
        line.push(job->tenant, job);
    }
    changed.notifyOne();
}

void Executor::Floor::cancel(const JobPtr& job) {
    job->cancelled = true;
    if (job->state == Job::State::InLine && line.erase(job->tenant, job)) {
        job->state = Job::State::Waiting;
    }
    wake(job);
}

void Executor::Floor::wakeOverdue(TimePoint now) {
    while (!alarms.empty() && alarms.begin()->first <= now) {
        const JobPtr job = alarms.begin()->second;
        wake(job);
    }
}

Executor::JobPtr Executor::next(std::shared_ptr<void>& place) {
    if (!floor_->cancelled.empty()) {
        JobPtr job = std::move(floor_->cancelled.front());
        floor_->cancelled.pop_front();
        return job;
    }
    floor_->wakeOverdue(clock_.now());
    const std::optional<JobPtr> job = floor_->line.popIf([&](const std::string& tenant) {
        place = places_.take(tenant);
        return place != nullptr;
    });
    if (!job) return nullptr;
    (*job)->state = Job::State::Running;
    (*job)->again = false;
    return *job;
}

void Executor::work(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        JobPtr job;
        std::shared_ptr<void> place;
        {
            const MutexLock lock(floor_->mutex);
            job = next(place);
            if (!job) {
                std::chrono::nanoseconds most = kLookAgain;
                if (!floor_->alarms.empty()) {
                    most = std::min(most, floor_->alarms.begin()->first - clock_.now());
                }
                floor_->changed.waitFor(floor_->mutex, stop, most,
                                        [&]() HEARTH_REQUIRES(floor_->mutex) {
                                            job = next(place);
                                            return job != nullptr;
                                        });
            }
        }
        if (!job) continue;
        step(job);
        const MutexLock lock(floor_->mutex);
        place.reset();
        floor_->changed.notifyOne();  // a job of this tenant may have waited for the place
    }
}

void Executor::step(const JobPtr& job) {
    bool cancelled = false;
    {
        const MutexLock lock(floor_->mutex);
        cancelled = job->cancelled;
    }
    Task<>& task = *job->task;
    const bool waits = !cancelled && task.wait() != nullptr && !task.wait()->over(clock_);
    if (!waits) job->subscription.reset();
    if (waits || (!cancelled && !task.run())) {
        park(job, task.wait());
        return;
    }
    job->task.reset();
    const MutexLock lock(floor_->mutex);
    floor_->jobs.erase(job);
}

void Executor::park(const JobPtr& job, const WaitablePtr& wait) {
    if (!job->subscription) {
        job->subscription =
            wait->subscribe([floor = std::weak_ptr(floor_), weak = std::weak_ptr(job)] {
                const std::shared_ptr<Floor> alive = floor.lock();
                const JobPtr woken = weak.lock();
                if (!alive || !woken) return;
                const MutexLock lock(alive->mutex);
                alive->wake(woken);
            });
    }
    const bool ready = wait->ready();  // perhaps since before the subscription
    const TimePoint until = wait->until();
    const MutexLock lock(floor_->mutex);
    job->state = Job::State::Waiting;
    if (until != TimePoint::max()) {
        job->alarm = floor_->alarms.emplace(until, job);
        if (*job->alarm == floor_->alarms.begin()) floor_->changed.notifyOne();
    }
    if (ready || job->again || job->cancelled) floor_->wake(job);
}

}  // namespace hearth
