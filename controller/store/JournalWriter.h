#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/Alarm.h"
#include "base/Mutex.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"

namespace hearth::controller {

class Database;
class DiskReserve;

/// Writes history in one thread, in order and many items in one transaction. An item that the disk
/// does not take is tried again, longer apart each time, until it is durable: no failure loses
/// another item. What depends on no other item (`alone`) may be overtaken by the rest. An item that
/// fails for a reason of its own is given up after a few tries. Thread-safe.
class JournalWriter {
public:
    struct Item {
        std::function<void(Database&)> write;
        /// Called after the commit with true, or with false where the item was given up.
        std::function<void(bool durable)> written;
        std::size_t bytes = 0;  ///< memory that it holds
        bool alone = false;
        unsigned tries = 0;
    };
    /// Writes all of these or, where it throws, none. Error(DiskFull) and Error(Unavailable) say
    /// that the disk may take them later.
    using Commit = std::function<void(const std::vector<const Item*>& items)>;

    /// `reserve` and `metrics` may be null.
    JournalWriter(Commit commit, const DiskReserve* reserve, metrics::Log& log,
                  metrics::Metrics* metrics);
    /// Tries once more to write what is left, then gives it up.
    ~JournalWriter();
    JournalWriter(const JournalWriter&) = delete;
    JournalWriter& operator=(const JournalWriter&) = delete;

    /// Never blocks on the disk.
    void add(Item item);
    /// Waits until everything added so far was tried, at most `timeout`; not for what the disk does
    /// not take.
    void flush(std::chrono::milliseconds timeout);
    /// Memory that items hold which are not durable yet.
    std::uint64_t pendingBytes() const { return pending_.load(std::memory_order_relaxed); }

private:
    using Items = std::deque<Item>;
    using Time = std::chrono::steady_clock::time_point;
    enum class Outcome { Written, Later, Never };
    /// When to try again what failed: later each time, unless something was written.
    struct Backoff {
        std::chrono::milliseconds delay{0};
        Time until{};
        void later();
        bool due() const { return std::chrono::steady_clock::now() >= until; }
    };

    void work(const std::stop_token& stop);
    Items take(bool last);
    /// After the last round: nothing more can be written.
    bool exhausted();
    void sleep(const std::stop_token& stop);
    void writeBatch(Items batch);
    bool writeTogether(Items& items);
    void writeAside();
    /// It is large, and the disk has no more than its reserve left.
    bool holdsBack(const Item& item) const;
    Outcome attempt(Item& item);
    void done(Item& item, bool durable);
    void putAside(Item item);
    void putBack(Items left, bool some);
    void countTried(std::size_t items = 1);
    void giveUp();
    void failed(const std::exception& reason);

    const Commit commit_;
    const DiskReserve* reserve_;
    metrics::Log& log_;
    metrics::Metrics* metrics_;
    Alarm alarm_;
    std::atomic<std::uint64_t> pending_{0};
    Mutex mutex_;
    Condition tried_some_;
    Items queue_ HEARTH_GUARDED_BY(mutex_);
    bool blocked_ HEARTH_GUARDED_BY(mutex_) = false;  // the first of queue_ waits for the disk
    std::uint64_t added_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::uint64_t tried_ HEARTH_GUARDED_BY(mutex_) = 0;
    // Used by the thread only:
    Items aside_;  ///< `alone`, and not taken by the disk
    Backoff queue_again_;
    Backoff aside_again_;
    /// The smallest size that the disk refused in this round.
    std::size_t refused_ = 0;
    bool failing_ = false;  ///< said once, until all is written again
    std::jthread thread_;
};

}  // namespace hearth::controller
