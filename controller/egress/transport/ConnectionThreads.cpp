#include "controller/egress/transport/ConnectionThreads.h"

#include <Poco/Exception.h>
#include <Poco/Runnable.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace hearth::egress {
namespace {

constexpr int kFewest = 2;
constexpr int kIdleSeconds = 30;
constexpr int kStack = 512 << 10;
constexpr int kNice = 5;

}  // namespace

/// One pool thread's work: its task, then waiting ones. Deletes itself, because Poco's pool does
/// not own its tasks.
class ConnectionThreads::Worker final : public Poco::Runnable {
public:
    Worker(ConnectionThreads& threads, Task task) : threads_(threads), task_(std::move(task)) {}

    /// Takes the task back from a worker that could not be started.
    Task giveBack() { return std::move(task_); }

    void run() override {
        const std::unique_ptr<Worker> self(this);
        ::setpriority(PRIO_PROCESS, 0, kNice);  // on Linux this affects one thread
        do {
            try {
                task_.work();
            } catch (const std::exception& e) {  // the thread's top
                threads_.log_.error("egress.failed", {{"error", e.what()}});
            }
            task_.work = nullptr;  // the objects it holds are released before its place is
            task_.place.reset();
        } while (threads_.next(task_));
    }

private:
    ConnectionThreads& threads_;
    Task task_;
};

ConnectionThreads::ConnectionThreads(int most, int most_of_tenant, metrics::Log& log)
    : log_(log),
      // Poco also counts threads that are just ending; places_ counts the running tasks.
      threads_(kFewest, 2 * most + kFewest, kIdleSeconds, kStack),
      places_(static_cast<std::size_t>(most), static_cast<std::size_t>(most_of_tenant)) {}

ConnectionThreads::~ConnectionThreads() {
    stop();
}

bool ConnectionThreads::takeWaiting(Task& task) {
    for (auto own = waiting_.begin(); own != waiting_.end(); ++own) {
        Task& first = own->front();
        first.place = places_.take(first.tenant);
        if (!first.place) continue;
        task = std::move(first);
        own->pop_front();
        if (own->empty()) {
            waiting_.erase(own);
        } else {
            waiting_.splice(waiting_.end(), waiting_, own);
        }
        return true;
    }
    return false;
}

void ConnectionThreads::wait(Task task) {
    const auto own = std::find_if(
        waiting_.begin(), waiting_.end(),
        [&](const std::deque<Task>& tasks) { return tasks.front().tenant == task.tenant; });
    if (own == waiting_.end()) {
        waiting_.emplace_back().push_back(std::move(task));
    } else {
        own->push_back(std::move(task));
    }
}

bool ConnectionThreads::next(Task& task) {
    const MutexLock lock(mutex_);
    if (stopping_ || !takeWaiting(task)) return false;
    // The end of one task may let two others run: a tenant's limit depends on the free places.
    Task another;
    while (takeWaiting(another) && launch(std::move(another))) another = {};
    return true;
}

bool ConnectionThreads::launch(Task task) {
    // The work is moved, never copied, so its last owner is the thread that ran it.
    auto worker = std::make_unique<Worker>(*this, std::move(task));
    try {
        threads_.start(*worker);
    } catch (const Poco::Exception&) {
        // The machine has no thread left: the task waits for a present thread.
        Task back = worker->giveBack();
        back.place.reset();
        wait(std::move(back));
        return false;
    }
    worker.release();  // the worker deletes itself
    return true;
}

bool ConnectionThreads::start(const std::string& tenant, std::function<void()> work) {
    // The mutex is held during the pool's own call: once stop() has it, no start() is running.
    // Also, joinAll() would otherwise wait for a thread that waits for it.
    const MutexLock lock(mutex_);
    if (stopping_) return false;
    Task task{tenant, std::move(work), places_.take(tenant)};
    if (task.place) {
        launch(std::move(task));
    } else {
        wait(std::move(task));
    }
    return true;
}

void ConnectionThreads::stop() {
    std::list<std::deque<Task>> dropped;
    {
        const MutexLock lock(mutex_);
        if (std::exchange(stopping_, true)) return;
        dropped.swap(waiting_);
    }
    dropped.clear();
    threads_.joinAll();
}

}  // namespace hearth::egress
