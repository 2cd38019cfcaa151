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

/// Writes history in one thread, in order, many items per transaction. An item that the disk
/// refuses is tried again, with growing delays, until it is durable: no failure loses another item.
/// An independent item (`alone`) may be overtaken by the rest, and tenants take turns with such
/// items, a few MiB at a time, so one tenant's many items do not delay another's. An item that
/// fails for its own reason is given up after a few tries. Thread-safe.
class JournalWriter {
public:
    struct Item {
        std::function<void(Database&)> write;
        /// Called after the commit with true, or with false if the item was given up.
        std::function<void(bool durable)> written;
        std::size_t bytes = 0;  ///< memory that the item uses
        bool alone = false;
        std::string tenant;  ///< its owner; empty: none
        unsigned tries = 0;
        bool refused = false;  ///< it was put aside before
    };
    /// Writes all items or, if it throws, none. Error(DiskFull) and Error(Unavailable) mean that
    /// the disk may accept them later.
    using Commit = std::function<void(const std::vector<const Item*>& items)>;

    /// `reserve` and `metrics` may be null.
    JournalWriter(Commit commit, const DiskReserve* reserve, metrics::Log& log,
                  metrics::Metrics* metrics);
    /// Tries once more to write the remaining items, then gives them up.
    ~JournalWriter();
    JournalWriter(const JournalWriter&) = delete;
    JournalWriter& operator=(const JournalWriter&) = delete;

    /// Queues an item; never blocks on the disk.
    void add(Item item);
    /// Waits up to `timeout` until everything added so far was tried, except items that the disk
    /// refuses and overtaken `alone` items.
    void flush(std::chrono::milliseconds timeout);
    /// The memory of items that are not durable yet: in total, and of one tenant.
    std::uint64_t pendingBytes() const { return pending_.load(std::memory_order_relaxed); }
    std::uint64_t pendingOf(const std::string& tenant) const;
    /// The total, counting each tenant up to `share`.
    std::uint64_t pendingShares(std::uint64_t share) const;

private:
    using Items = std::deque<Item>;
    using Time = std::chrono::steady_clock::time_point;
    enum class Outcome { Written, Later, Never };
    /// The time of the next try after failures: later each time, unless something was written.
    struct Backoff {
        std::chrono::milliseconds delay{0};
        Time until{};
        void later();
        bool due() const { return std::chrono::steady_clock::now() >= until; }
    };

    void work(const std::stop_token& stop);
    /// The items that the next round writes.
    struct Round {
        Items items;            ///< `alone` first: the later ones may stop at a refusal
        bool of_queue = false;  ///< queue_ was emptied for it
        std::size_t fresh = 0;  ///< how many came from queue_
    };
    Round take(bool last);
    /// True if nothing more can be written after the last round.
    bool exhausted();
    void sleep(const std::stop_token& stop);
    /// Returns how many items it put back.
    std::size_t write(Round round);
    bool writeTogether(Items& items);
    void retryAside();
    /// True for a large item while the disk has only its reserve left.
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
    bool blocked_ HEARTH_GUARDED_BY(mutex_) = false;  // the first of queue_ waits to be retried
    std::uint64_t added_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::uint64_t tried_ HEARTH_GUARDED_BY(mutex_) = 0;
    // Used by the thread only:
    FairLine<Item> line_;  ///< `alone`, and not tried since it was added or put aside
    Items aside_;          ///< `alone`; failed, or held back for the reserve; tried again later
    Backoff queue_again_;
    Backoff aside_again_;
    /// The smallest size that the disk refused since aside_ was empty.
    std::size_t refused_ = 0;
    bool failing_ = false;  ///< logged once, until everything is written again
    std::jthread thread_;
};

}  // namespace hearth::controller
