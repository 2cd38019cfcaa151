#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/Alarm.h"
#include "base/Mutex.h"
#include "base/tenants/FairLine.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"

namespace hearth::controller {

class Database;
class DiskReserve;

/// Writes history in one thread, in order and many items in one transaction. An item that the disk
/// does not take is tried again, longer apart each time, until it is durable: no failure loses
/// another item. What depends on no other item (`alone`) may be overtaken by the rest, and tenants
/// take turns in it, a few MiB at a time: however much one of them has, the others do not wait for
/// it. An item that fails for a reason of its own is given up after a few tries. Thread-safe.
class JournalWriter {
public:
    struct Item {
        std::function<void(Database&)> write;
        /// Called after the commit with true, or with false where the item was given up.
        std::function<void(bool durable)> written;
        std::size_t bytes = 0;  ///< memory that it holds
        bool alone = false;
        std::string tenant;  ///< whose it is; empty: nobody's
        unsigned tries = 0;
        bool refused = false;  ///< before, and put aside
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
    /// not take, nor for what is `alone` and was overtaken.
    void flush(std::chrono::milliseconds timeout);
    /// Memory that items hold which are not durable yet; of all, and of one tenant.
    std::uint64_t pendingBytes() const { return pending_.load(std::memory_order_relaxed); }
    std::uint64_t pendingOf(const std::string& tenant) const;
    /// The same of all, where each tenant counts with `share` at most.
    std::uint64_t pendingShares(std::uint64_t share) const;

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
    /// The items that the next round writes.
    struct Round {
        Items items;            ///< `alone` first: what comes behind may stop for the disk
        bool of_queue = false;  ///< queue_ was emptied for it
        std::size_t fresh = 0;  ///< so many came from there
    };
    Round take(bool last);
    /// After the last round: nothing more can be written.
    bool exhausted();
    void sleep(const std::stop_token& stop);
    /// How many of them it put back.
    std::size_t write(Round round);
    bool writeTogether(Items& items);
    void retryAside();
    /// It is large, and the disk has no more than its reserve left.
    bool holdsBack(const Item& item) const;
    Outcome attempt(Item& item);
    void done(Item& item, bool durable);
    void putAside(Item item);
    std::size_t putBack(Items left, bool some);
    void countTried(std::size_t items);
    void count(const Item& item);
    void uncount(const Item& item);
    void giveUp();
    void failed(const std::exception& reason);

    const Commit commit_;
    const DiskReserve* reserve_;
    metrics::Log& log_;
    metrics::Metrics* metrics_;
    Alarm alarm_;
    std::atomic<std::uint64_t> pending_{0};
    mutable Mutex pending_mutex_;
    std::map<std::string, std::uint64_t> pending_of_
        HEARTH_GUARDED_BY(pending_mutex_);  ///< by tenant
    Mutex mutex_;
    Condition tried_some_;
    Items queue_ HEARTH_GUARDED_BY(mutex_);
    bool blocked_ HEARTH_GUARDED_BY(mutex_) = false;  // the first of queue_ waits for the disk
    std::uint64_t added_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::uint64_t tried_ HEARTH_GUARDED_BY(mutex_) = 0;
    // Used by the thread only:
    FairLine<Item> line_;  ///< `alone`, and not tried since it came or was put aside
    Items aside_;          ///< `alone`, and not taken by the disk
    Backoff queue_again_;
    Backoff aside_again_;
    /// The smallest size that the disk refused since aside_ was empty.
    std::size_t refused_ = 0;
    bool failing_ = false;  ///< said once, until all is written again
    std::jthread thread_;
};

}  // namespace hearth::controller
