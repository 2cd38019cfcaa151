#include "api/mcp/http/PendingToolCalls.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "api/mcp/protocol/Era.h"

namespace hearth::mcp {
namespace {

constexpr std::chrono::nanoseconds kLongest = std::chrono::seconds(60);
/// The most output sent in one log message, and of one call. The result has head and tail.
constexpr std::size_t kLogPiece = 16U << 10U;
constexpr std::uint64_t kLogMost = 1U << 20U;

}  // namespace

using StopCallback = std::stop_callback<std::function<void()>>;

struct PendingToolCalls::Followed {
    PendingToolCall call;
    std::shared_ptr<MessageSink> sink;
    HangUp hang_up = HangUp::LeavesRunning;
    std::shared_ptr<void> closing;
    std::shared_ptr<void> subscription;
    std::unique_ptr<StopCallback> on_stop;
    // Owned by the thread that looks at the call; else by the holder of the inbox's mutex.
    TimePoint progress_at{};  ///< when the next progress is due without any news
    TimePoint reported_at{};
    std::int64_t progress = 0;
    std::uint64_t logged = 0;  ///< bytes of output sent as log messages
    // Guarded by the inbox's mutex, which the checker cannot name here.
    bool at_work = false;  ///< in line, or looked at
    bool again = false;    ///< news came meanwhile
    bool done = false;
};

void PendingToolCalls::Inbox::mark(std::uint64_t id) {
    const MutexLock lock(mutex);
    dirty.insert(id);
    changed.notifyOne();
}

PendingToolCalls::PendingToolCalls(const Clock& clock, metrics::Log& log)
    : clock_(clock),
      log_(log),
      canceller_(clock, log),
      scheduler_([this](const std::stop_token& stop) { scheduleLoop(stop); }) {
    for (unsigned i = 0; i < kAnswers.workers; ++i) lookers_.emplace_back([this] { lookLoop(); });
}

PendingToolCalls::~PendingToolCalls() {
    scheduler_.request_stop();
    scheduler_.join();  // then each call is in line for the last time
    lookers_.clear();
}

void PendingToolCalls::follow(const std::shared_ptr<MessageSink>& sink,
                              std::vector<PendingToolCall> calls, const std::stop_token& stop,
                              HangUp hang_up) {
    for (PendingToolCall& call : calls) {
        const std::uint64_t id = next_id_++;
        auto followed = std::make_shared<Followed>();
        followed->call = std::move(call);
        followed->sink = sink;
        followed->hang_up = hang_up;
        followed->progress_at = clock_.now();
        const std::shared_ptr<Inbox> inbox = inbox_;
        const std::function<void()> wake = [inbox, id] { inbox->mark(id); };
        followed->subscription = followed->call.pending.work->subscribe(wake);
        followed->closing = sink->onClosed(wake);
        followed->on_stop = std::make_unique<StopCallback>(stop, [inbox, id] {
            const MutexLock lock(inbox->mutex);
            inbox->stop_now = true;
            inbox->changed.notifyOne();
        });
        followed->call.call->onCancel([wake, cancel = followed->call.pending.cancel] {
            cancel();
            wake();
        });
        {
            const MutexLock lock(inbox_->mutex);
            inbox_->arrived.emplace_back(id, std::move(followed));
            inbox_->dirty.insert(id);
        }
        inbox_->changed.notifyOne();
    }
}

void PendingToolCalls::cancelAside(PendingToolCall& call) {
    call.pending.cancel = canceller_.cancelLater(call);
    call.call->onCancel(call.pending.cancel);
}

void PendingToolCalls::scheduleLoop(const std::stop_token& stop) {
    for (bool last = false; !last;) {
        std::vector<FollowedPtr> done;  // ends after the lock: its subscriptions wait for callbacks
        const MutexLock lock(inbox_->mutex);
        inbox_->changed.waitFor(inbox_->mutex, stop, untilNext(),
                                [this]() HEARTH_REQUIRES(inbox_->mutex) {
                                    return !inbox_->dirty.empty() || !inbox_->arrived.empty() ||
                                           inbox_->looked || inbox_->stop_now;
                                });
        last = stop.stop_requested();
        inbox_->stop_now = inbox_->stop_now || last;
        done = schedule();
        inbox_->over = last;
        inbox_->due.notifyAll();
    }
}

std::vector<PendingToolCalls::FollowedPtr> PendingToolCalls::schedule() {
    for (auto& [id, followed] : inbox_->arrived) followed_.emplace(id, std::move(followed));
    inbox_->arrived.clear();
    const bool stop_now = std::exchange(inbox_->stop_now, false);
    inbox_->stopping = inbox_->stopping || stop_now;
    inbox_->looked = false;
    std::vector<FollowedPtr> done;
    const TimePoint now = clock_.now();
    for (auto it = followed_.begin(); it != followed_.end();) {
        const auto at = it++;
        Followed& one = *at->second;
        const bool news = stop_now || inbox_->dirty.contains(at->first);
        if (one.done) {
            done.push_back(std::move(at->second));
            followed_.erase(at);
        } else if (one.at_work) {
            one.again = one.again || news;
        } else if (news || now >= one.progress_at ||
                   (one.call.pending.until && now >= *one.call.pending.until)) {
            one.at_work = true;
            inbox_->line.push(one.call.tenant, at->second);
        }
    }
    inbox_->dirty.clear();
    return done;
}

void PendingToolCalls::lookLoop() {
    Inbox& inbox = *inbox_;
    UniqueMutexLock lock(inbox.mutex);
    while (true) {
        std::optional<FollowedPtr> one;
        inbox.due.wait(inbox.mutex, [&]() HEARTH_REQUIRES(inbox.mutex) {
            one = inbox.line.pop();
            return one || (inbox.over && inbox.line.size() == 0);
        });
        if (!one) return;
        Followed& followed = **one;
        const bool stopping = inbox.stopping;
        lock.unlock();
        const bool goes_on = lookSafely(followed, stopping);
        lock.lock();
        inbox.line.done(followed.call.tenant);
        followed.done = !goes_on;
        if (goes_on && std::exchange(followed.again, false)) {
            inbox.line.push(followed.call.tenant, *one);
        } else {
            followed.at_work = false;
        }
        inbox.looked = true;
        inbox.changed.notifyOne();
        inbox.due.notifyAll();  // its tenant may have its next turn
    }
}

bool PendingToolCalls::lookSafely(Followed& followed, bool stopping) {
    try {
        return look(followed, stopping);
    } catch (const std::exception& error) {
        log_.error("mcp.slow_call_failed", {{"error", error.what()}});
        return false;
    }
}

bool PendingToolCalls::look(Followed& followed, bool stopping) {
    const PendingToolCall& call = followed.call;
    MessageSink& sink = *followed.sink;
    if (call.call->cancelled()) return false;
    if (sink.closed()) {
        // Work that a revoked token began belongs to its tenant and continues.
        if (followed.hang_up == HangUp::Cancels && !sink.lapsed()) call.call->cancel();
        return false;
    }
    sendOutput(followed);
    const TimePoint now = clock_.now();
    if (stopping || call.pending.ready(now)) {
        // Checked again, because a cancel since then may have ended it.
        if (!call.call->cancelled()) sink.send(call.answer());
        return false;
    }
    const bool first = followed.progress == 0;
    if (first || now - followed.reported_at >= kProgressLeast) {
        if (!call.progress_token.is_null()) {
            const auto seconds = [now](TimePoint since) {
                return std::int64_t{std::chrono::round<std::chrono::seconds>(now - since).count()};
            };
            const PendingWork::Doing doing = call.pending.work->doing();
            followed.progress = std::max(followed.progress + 1, seconds(call.started_at));
            sink.send(notificationMessage(
                "notifications/progress",
                {{"progressToken", call.progress_token},
                 {"progress", followed.progress},
                 {"message", doing.what + " for " +
                                 std::to_string(seconds(doing.since.value_or(call.started_at))) +
                                 " s"}}));
        }
        followed.reported_at = now;
        followed.progress_at = now + kProgressEvery;
    }
    return true;
}

void PendingToolCalls::sendOutput(Followed& followed) {
    const PendingToolCall& call = followed.call;
    if (!call.log_severity) return;
    while (followed.logged < kLogMost) {
        const auto chunk = call.pending.work->read(followed.logged, kLogPiece);
        if (!chunk || chunk->bytes.empty()) return;
        followed.logged = chunk->offset + chunk->bytes.size();
        const std::string level = chunk->channel == 2 ? "warning" : "info";
        if (logSeverity(level) < call.log_severity) continue;
        followed.sink->send(notificationMessage("notifications/message",
                                                {{"level", level},
                                                 {"logger", call.pending.work->executionId()},
                                                 {"data", toUtf8(chunk->bytes)}}));
    }
}

std::chrono::nanoseconds PendingToolCalls::untilNext() const {
    std::chrono::nanoseconds least = kLongest;
    const TimePoint now = clock_.now();
    for (const auto& [id, one] : followed_) {
        if (one->at_work) continue;  // `looked` reports when that ends
        least = std::min<std::chrono::nanoseconds>(least, one->progress_at - now);
        if (const auto& until = one->call.pending.until) {
            least = std::min<std::chrono::nanoseconds>(least, *until - now);
        }
    }
    return std::max<std::chrono::nanoseconds>(least, std::chrono::milliseconds(1));
}

}  // namespace hearth::mcp
