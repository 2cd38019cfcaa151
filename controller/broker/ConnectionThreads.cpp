#include "controller/broker/ConnectionThreads.h"

#include <Poco/Exception.h>
#include <Poco/Runnable.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace hearth::broker {
namespace {

constexpr int kFewest = 2;
constexpr int kIdleSeconds = 30;
constexpr int kStack = 512 << 10;
constexpr int kNice = 5;

}  // namespace

/// One thread's turn: its task, then what waits. Frees itself, since Poco's pool does not own what
/// it runs.
class ConnectionThreads::Worker final : public Poco::Runnable {
public:
    Worker(ConnectionThreads& threads, Task task) : threads_(threads), task_(std::move(task)) {}

    /// Of one that could not be started.
    Task giveBack() { return std::move(task_); }

    void run() override {
        const std::unique_ptr<Worker> self(this);
        ::setpriority(PRIO_PROCESS, 0, kNice);  // on Linux, of this thread
        do {
            try {
                task_.work();
            } catch (const std::exception& e) {  // the thread's top
                threads_.log_.error("broker.failed", {{"error", e.what()}});
            }
            task_.work = nullptr;  // what it held goes before its place does
            threads_.ended(task_.tenant);
        } while (threads_.next(task_));
    }

private:
    ConnectionThreads& threads_;
    Task task_;
};

ConnectionThreads::ConnectionThreads(int most, int most_of_tenant, metrics::Log& log)
    : most_(most),
      most_of_tenant_(most_of_tenant),
      log_(log),
      // Of its own threads Poco counts those that are just ending, too: we count what runs.
      threads_(kFewest, 2 * most + kFewest, kIdleSeconds, kStack) {}

ConnectionThreads::~ConnectionThreads() {
    stop();
}

bool ConnectionThreads::mayRun(const std::string& tenant) const {
    const auto found = of_tenant_.find(tenant);
    return running_ < most_ && (found == of_tenant_.end() || found->second < most_of_tenant_);
}

bool ConnectionThreads::next(Task& task) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const Task& one) { return mayRun(one.tenant); });
    if (found == waiting_.end()) return false;
    task = std::move(*found);
    waiting_.erase(found);
    ++running_;
    ++of_tenant_[task.tenant];
    return true;
}

void ConnectionThreads::ended(const std::string& tenant) {
    const std::lock_guard lock(mutex_);
    --running_;
    if (--of_tenant_[tenant] == 0) of_tenant_.erase(tenant);
}

bool ConnectionThreads::start(const std::string& tenant, std::function<void()> work) {
    // Held over the pool's own call: once stop() has the mutex nobody is in there any more, and
    // joinAll() would wait for whoever waits for it.
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    Task task{tenant, std::move(work)};
    if (!mayRun(tenant)) {
        waiting_.push_back(std::move(task));
        return true;
    }
    // The work is moved, never copied: its last owner is the thread that has done it.
    auto worker = std::make_unique<Worker>(*this, std::move(task));
    try {
        threads_.start(*worker);
    } catch (const Poco::Exception&) {
        // The machine has no thread left: it waits for one of ours.
        waiting_.push_back(worker->giveBack());
        return true;
    }
    worker.release();  // it frees itself
    ++running_;
    ++of_tenant_[tenant];
    return true;
}

void ConnectionThreads::stop() {
    std::deque<Task> dropped;
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(stopping_, true)) return;
        dropped.swap(waiting_);
    }
    dropped.clear();
    threads_.joinAll();
}

}  // namespace hearth::broker
