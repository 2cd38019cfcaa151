#include "controller/store/JournalWriter.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/Error.h"
#include "controller/store/DiskReserve.h"

namespace hearth::controller {
namespace {

constexpr auto kGather = std::chrono::milliseconds(2);
constexpr auto kFirstDelay = std::chrono::milliseconds(20);
constexpr auto kLastDelay = std::chrono::seconds(5);
/// Of an item that fails although the disk takes others.
constexpr unsigned kTries = 3;
/// So much waits while the disk has only its reserve left, which the rest of the state needs.
constexpr std::size_t kLarge = 64U << 10U;
constexpr std::size_t kNoneRefused = std::numeric_limits<std::size_t>::max();

/// The disk may take the same write later.
bool passes(const std::exception& reason) {
    const auto* error = dynamic_cast<const Error*>(&reason);
    return error != nullptr &&
           (error->code() == ErrorCode::DiskFull || error->code() == ErrorCode::Unavailable);
}

}  // namespace

void JournalWriter::Backoff::later() {
    delay = delay.count() == 0 ? kFirstDelay
                               : std::min<std::chrono::milliseconds>(delay * 2, kLastDelay);
    until = std::chrono::steady_clock::now() + delay;
}

JournalWriter::JournalWriter(Commit commit, const DiskReserve* reserve, metrics::Log& log,
                             metrics::Metrics* metrics)
    : commit_(std::move(commit)),
      reserve_(reserve),
      log_(log),
      metrics_(metrics),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

JournalWriter::~JournalWriter() {
    thread_.request_stop();
    const MutexLock lock(mutex_);
    alarm_.ringIn(std::chrono::nanoseconds(0));
}

void JournalWriter::add(Item item) {
    pending_ += item.bytes;
    const MutexLock lock(mutex_);
    queue_.push_back(std::move(item));
    ++added_;
    // Answers first: what they queue is written together, and not beside them.
    if (queue_.size() == 1) alarm_.ringIn(kGather);
}

void JournalWriter::flush(std::chrono::milliseconds timeout) {
    const MutexLock lock(mutex_);
    const std::uint64_t target = added_;
    tried_some_.waitFor(mutex_, timeout,
                        [&]() HEARTH_REQUIRES(mutex_) { return tried_ >= target || blocked_; });
}

void JournalWriter::work(const std::stop_token& stop) {
    while (true) {
        const bool last = stop.stop_requested();
        if (last) reserve_ = nullptr;  // what is not written now never is
        refused_ = kNoneRefused;
        Items batch = take(last);
        const bool some = !batch.empty();
        if (some) writeBatch(std::move(batch));
        const bool again = !aside_.empty() && (last || aside_again_.due());
        if (again) writeAside();
        if (metrics_ != nullptr) metrics_->journalPending(static_cast<double>(pendingBytes()));
        if (last && exhausted()) break;
        if (!last && !some && !again) sleep(stop);
    }
    giveUp();
}

JournalWriter::Items JournalWriter::take(bool last) {
    Items batch;
    const MutexLock lock(mutex_);
    if (!blocked_ || last || queue_again_.due()) batch.swap(queue_);
    return batch;
}

bool JournalWriter::exhausted() {
    const MutexLock lock(mutex_);
    return queue_.empty() || blocked_;
}

void JournalWriter::sleep(const std::stop_token& stop) {
    {
        const MutexLock lock(mutex_);
        if (stop.stop_requested() || (!blocked_ && !queue_.empty())) return;
        if (failing_ && queue_.empty() && aside_.empty()) {
            failing_ = false;
            log_.info("journal.recovered");
        }
        // A later add() sets an earlier time; then all this is looked at again.
        Time next = aside_.empty() ? Time::max() : aside_again_.until;
        if (blocked_) next = std::min(next, queue_again_.until);
        if (next != Time::max()) alarm_.ringIn(next - std::chrono::steady_clock::now());
    }
    alarm_.wait();
}

void JournalWriter::writeBatch(Items batch) {
    Items left;
    for (Item& item : batch) {
        if (holdsBack(item)) {
            putAside(std::move(item));
        } else {
            left.push_back(std::move(item));
        }
    }
    if (writeTogether(left)) left.clear();
    bool some = left.empty();
    while (!left.empty()) {
        Item& item = left.front();
        const Outcome outcome = attempt(item);
        if (outcome == Outcome::Later && !item.alone) return putBack(std::move(left), some);
        if (outcome == Outcome::Later) {
            putAside(std::move(item));
        } else {
            some = some || outcome == Outcome::Written;
            done(item, outcome == Outcome::Written);
            countTried();
        }
        left.pop_front();
    }
    queue_again_ = {};
    const MutexLock lock(mutex_);
    blocked_ = false;
}

bool JournalWriter::writeTogether(Items& items) {
    if (items.size() < 2) return false;  // it is tried alone
    std::vector<const Item*> all;
    all.reserve(items.size());
    for (const Item& item : items) all.push_back(&item);
    try {
        commit_(all);
    } catch (const std::exception& e) {
        failed(e);
        return false;
    }
    for (Item& item : items) done(item, true);
    countTried(items.size());
    return true;
}

void JournalWriter::writeAside() {
    Items left;
    bool some = false;
    for (Item& item : std::exchange(aside_, {})) {
        const Outcome outcome = holdsBack(item) ? Outcome::Later : attempt(item);
        some = some || outcome == Outcome::Written;
        if (outcome == Outcome::Later) {
            left.push_back(std::move(item));
        } else {
            done(item, outcome == Outcome::Written);
        }
    }
    // The callbacks may not add to it: only this thread's rounds do.
    aside_ = std::move(left);
    if (some) aside_again_ = {};
    if (!aside_.empty()) aside_again_.later();
}

bool JournalWriter::holdsBack(const Item& item) const {
    return item.alone && item.bytes >= kLarge && reserve_ != nullptr && reserve_->low();
}

JournalWriter::Outcome JournalWriter::attempt(Item& item) {
    if (item.alone && item.bytes >= refused_) return Outcome::Later;
    try {
        commit_({&item});
        return Outcome::Written;
    } catch (const std::exception& e) {
        failed(e);
        if (passes(e)) {
            refused_ = std::min(refused_, std::max<std::size_t>(item.bytes, 1));
            return Outcome::Later;
        }
        if (++item.tries < kTries) return Outcome::Later;
        log_.error("journal.record_lost", {{"error", e.what()}});
        return Outcome::Never;
    }
}

void JournalWriter::done(Item& item, bool durable) {
    if (!durable && metrics_ != nullptr) metrics_->journalLost(1);
    if (item.written) {
        try {
            item.written(durable);
        } catch (const std::exception& e) {
            log_.error("journal.callback_failed", {{"error", e.what()}});
        }
    }
    pending_ -= item.bytes;
    item = {};  // whoever waits for it may end what its callbacks hold
}

void JournalWriter::putAside(Item item) {
    if (aside_.empty()) aside_again_.later();
    aside_.push_back(std::move(item));
    countTried();
}

void JournalWriter::putBack(Items left, bool some) {
    if (some) queue_again_ = {};
    queue_again_.later();
    {
        const MutexLock lock(mutex_);
        blocked_ = true;
        std::move(queue_.begin(), queue_.end(), std::back_inserter(left));
        queue_ = std::move(left);
    }
    tried_some_.notifyAll();
}

void JournalWriter::countTried(std::size_t items) {
    {
        const MutexLock lock(mutex_);
        tried_ += items;
    }
    tried_some_.notifyAll();
}

void JournalWriter::giveUp() {
    Items left = std::exchange(aside_, {});
    {
        const MutexLock lock(mutex_);
        std::move(queue_.begin(), queue_.end(), std::back_inserter(left));
        queue_.clear();
    }
    if (left.empty()) return;
    log_.error("journal.records_lost",
               {{"records", left.size()},
                {"hint",
                 "the disk did not take them before the end; results of one shots are "
                 "read back from their sandboxes at the next start"}});
    for (Item& item : left) done(item, false);
}

void JournalWriter::failed(const std::exception& reason) {
    if (metrics_ != nullptr) metrics_->journalFailed();
    if (std::exchange(failing_, true)) return;
    log_.error("journal.write_failed",
               {{"error", reason.what()}, {"hint", "it is tried again until it succeeds"}});
}

}  // namespace hearth::controller
