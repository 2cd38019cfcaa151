#include "controller/journal/JournalWriter.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/Error.h"
#include "controller/journal/DiskReserve.h"

namespace hearth::controller {
namespace {

constexpr auto kGather = std::chrono::milliseconds(2);
constexpr auto kFirstWriteDelay = std::chrono::milliseconds(20);
constexpr auto kLastWriteDelay = std::chrono::seconds(5);
/// The tries of an item that fails although the disk accepts other items.
constexpr unsigned kTries = 3;
/// Items of at least this size wait while the disk has only its reserve, which other state needs.
constexpr std::size_t kLarge = 64U << 10U;
/// How many bytes of `alone` items are written before the queue is read again.
constexpr std::size_t kRound = 4U << 20U;
constexpr std::size_t kNoneRefused = std::numeric_limits<std::size_t>::max();

/// True if the disk may accept the same write later.
bool passes(const std::exception& reason) {
    const auto* error = dynamic_cast<const Error*>(&reason);
    return error != nullptr &&
           (error->code() == ErrorCode::DiskFull || error->code() == ErrorCode::Unavailable);
}

}  // namespace

void JournalWriter::Backoff::later() {
    delay = delay.count() == 0 ? kFirstWriteDelay
                               : std::min<std::chrono::milliseconds>(delay * 2, kLastWriteDelay);
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
    count(item);
    const MutexLock lock(mutex_);
    queue_.push_back(std::move(item));
    ++added_;
    // Answers come first: the items that they queue are written together, after them.
    if (queue_.size() == 1) alarm_.ringIn(kGather);
}

void JournalWriter::flush(std::chrono::milliseconds timeout) {
    const MutexLock lock(mutex_);
    const std::uint64_t target = added_;
    if (tried_ < target) alarm_.ringIn(std::chrono::nanoseconds(0));  // somebody waits for it
    tried_some_.waitFor(mutex_, timeout,
                        [&]() HEARTH_REQUIRES(mutex_) { return tried_ >= target || blocked_; });
}

void JournalWriter::count(const Item& item) {
    pending_ += item.bytes;
    if (item.tenant.empty()) return;
    const MutexLock lock(pending_mutex_);
    pending_of_[item.tenant] += item.bytes;
}

void JournalWriter::uncount(const Item& item) {
    pending_ -= item.bytes;
    const MutexLock lock(pending_mutex_);
    const auto found = pending_of_.find(item.tenant);
    if (found != pending_of_.end() && (found->second -= item.bytes) == 0) pending_of_.erase(found);
}

std::uint64_t JournalWriter::pendingOf(const std::string& tenant) const {
    const MutexLock lock(pending_mutex_);
    const auto found = pending_of_.find(tenant);
    return found == pending_of_.end() ? 0 : found->second;
}

std::uint64_t JournalWriter::pendingShares(std::uint64_t share) const {
    const MutexLock lock(pending_mutex_);
    std::uint64_t beyond = 0;
    for (const auto& [tenant, bytes] : pending_of_) beyond += bytes - std::min(bytes, share);
    const std::uint64_t all = pendingBytes();  // counted without this lock
    return all - std::min(all, beyond);
}

void JournalWriter::work(const std::stop_token& stop) {
    while (true) {
        const bool last = stop.stop_requested();
        if (last) reserve_ = nullptr;  // the last chance to write
        if (last || aside_again_.due()) retryAside();
        Round round = take(last);
        const bool some = !round.items.empty();
        const std::size_t fresh = round.fresh;
        if (some) countTried(fresh - write(std::move(round)));
        if (line_.empty() && aside_.empty()) aside_again_ = {};
        if (metrics_ != nullptr) metrics_->journalPending(static_cast<double>(pendingBytes()));
        if (last && exhausted()) break;
        if (!last && !some) sleep(stop);
    }
    giveUp();
}

JournalWriter::Round JournalWriter::take(bool last) {
    Round round;
    Items fresh;
    {
        const MutexLock lock(mutex_);
        round.of_queue = !blocked_ || last || queue_again_.due();
        if (round.of_queue) fresh.swap(queue_);
    }
    round.fresh = fresh.size();
    Items in_order;
    for (Item& item : fresh) {
        if (item.alone) {
            const std::string tenant = item.tenant;
            line_.push(tenant, std::move(item));
        } else {
            in_order.push_back(std::move(item));
        }
    }
    for (std::size_t bytes = 0; !line_.empty() && (last || bytes < kRound);) {
        round.items.push_back(line_.pop());
        bytes += round.items.back().bytes;
    }
    std::move(in_order.begin(), in_order.end(), std::back_inserter(round.items));
    return round;
}

void JournalWriter::retryAside() {
    for (Item& item : std::exchange(aside_, {})) {
        const std::string tenant = item.tenant;
        line_.push(tenant, std::move(item));
    }
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
        // A later add() sets an earlier time; the loop then recomputes this time.
        Time next = aside_.empty() ? Time::max() : aside_again_.until;
        if (blocked_) next = std::min(next, queue_again_.until);
        if (next != Time::max()) alarm_.ringIn(next - std::chrono::steady_clock::now());
    }
    alarm_.wait();
}

std::size_t JournalWriter::write(Round round) {
    if (aside_.empty()) refused_ = kNoneRefused;
    Items left;
    for (Item& item : round.items) {
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
        }
        left.pop_front();
    }
    if (!round.of_queue) return 0;
    queue_again_ = {};
    const MutexLock lock(mutex_);
    blocked_ = false;
    return 0;
}

bool JournalWriter::writeTogether(Items& items) {
    if (items.size() < 2) return false;  // a single item is tried alone
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
    return true;
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
    uncount(item);
    if (durable && item.refused) {  // an item put aside was written, so retry the others
        aside_again_ = {};
        if (!aside_.empty()) aside_again_.later();
    }
    item = {};  // a waiting thread may destroy objects that its callbacks hold
}

void JournalWriter::putAside(Item item) {
    if (aside_.empty()) aside_again_.later();
    item.refused = true;
    aside_.push_back(std::move(item));
}

std::size_t JournalWriter::putBack(Items left, bool some) {
    const std::size_t count = left.size();
    if (some) queue_again_ = {};
    queue_again_.later();
    {
        const MutexLock lock(mutex_);
        blocked_ = true;
        std::move(queue_.begin(), queue_.end(), std::back_inserter(left));
        queue_ = std::move(left);
    }
    tried_some_.notifyAll();
    return count;
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
