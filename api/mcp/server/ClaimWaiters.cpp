#include "api/mcp/server/ClaimWaiters.h"

#include <exception>
#include <stop_token>
#include <system_error>
#include <utility>

#include "base/Error.h"
#include "base/Subscribers.h"
#include "controller/claims/ClaimWait.h"

namespace hearth::mcp {
namespace {

constexpr std::chrono::seconds kTryAgain{5};

/// Returns the claim's place in line as words that follow the reason of the wait; may be empty.
std::string placeOf(const controller::ClaimWait& claim) {
    const auto progress = claim.progress();
    if (!progress || progress->place == 0) return {};
    std::string text = " (place " + std::to_string(progress->place) + " of " +
                       std::to_string(progress->of) + " in line";
    if (progress->estimate) {
        text += ", about " + std::to_string(progress->estimate->count()) + " s to go";
    }
    return text + ")";
}

}  // namespace

/// One call: its thread makes the result, its caller may cancel or leave it meanwhile.
class ClaimWaiters::Wait : public std::enable_shared_from_this<Wait> {
public:
    Wait(std::string what_for, const Clock& clock)
        : what_for_(std::move(what_for)), clock_(clock), since_(clock.now()) {}

    std::stop_token token() const { return stop_.get_token(); }
    const std::shared_ptr<controller::ClaimWait>& claim() const { return claim_; }

    /// Runs in the call's thread, once. Returns when nothing is left that may have to be undone.
    void run(const std::function<ToolOutcome()>& handler) {
        try {
            settle(handler(), nullptr);
        } catch (...) {
            settle(std::nullopt, std::current_exception());
        }
        undoUnlessTold();
    }

    bool finished() const {
        {
            const MutexLock lock(mutex_);
            if (!settled_) return false;
        }
        const std::shared_ptr<PendingWork> run = running();
        return !run || run->finished();
    }

    std::shared_ptr<void> subscribe(std::function<void()> changed) {
        return subscribers_.add(std::move(changed));
    }

    /// Returns the execution that the call has become; null before that, or if it became none.
    std::shared_ptr<PendingWork> running() const {
        const MutexLock lock(mutex_);
        const auto* pending = outcome_ ? std::get_if<PendingCall>(&*outcome_) : nullptr;
        return pending == nullptr ? nullptr : pending->work;
    }

    PendingWork::Doing doing() const {
        const std::string place = placeOf(*claim_);
        const MutexLock lock(mutex_);
        return {settled_ ? "running" : "waiting for " + what_for_ + place, since_};
    }

    ToolResult finish() {
        std::function<ToolResult()> rest;
        {
            UniqueMutexLock lock(mutex_);
            if (taken_back_) throw controller::takenBack();
            if (!settled_) {  // only a server that stops asks this early
                lock.unlock();
                takeBack();
                throw Error(ErrorCode::Unavailable, "the server is shutting down")
                    .hint("try again after its restart");
            }
            told_ = true;
            known_.notifyAll();
            if (failure_) std::rethrow_exception(failure_);
            if (auto* result = std::get_if<ToolResult>(&*outcome_)) return std::move(*result);
            rest = std::get<PendingCall>(*outcome_).finish;
        }
        return rest();
    }

    /// The caller has cancelled the call.
    void takeBack() {
        std::optional<ToolOutcome> made;
        {
            const MutexLock lock(mutex_);
            const bool begun = outcome_ && std::holds_alternative<PendingCall>(*outcome_);
            if (taken_back_ || (told_ && !begun)) return;
            taken_back_ = true;
            if (begun) {
                made = *outcome_;  // copied: others still read it
            } else {
                made.swap(outcome_);
                settled_ = true;
            }
        }
        leave();
        if (made) undo(*made);
    }

    /// The client is gone. An execution continues, because the client can find it again. The call's
    /// thread ends anything else that was made, because abandon() may run in a shared thread.
    void abandon() {
        {
            const MutexLock lock(mutex_);
            const bool begun = outcome_ && std::holds_alternative<PendingCall>(*outcome_);
            if (taken_back_ || told_ || begun) return;
            taken_back_ = true;
            settled_ = true;
        }
        leave();
    }

private:
    void leave() {
        stop_.request_stop();
        subscribers_.notify();
        known_.notifyAll();
    }

    void undoUnlessTold() {
        std::optional<ToolOutcome> made;
        {
            const MutexLock lock(mutex_);
            const auto* result = outcome_ ? std::get_if<ToolResult>(&*outcome_) : nullptr;
            if (result == nullptr || !result->take_back) return;
            known_.wait(mutex_, [this]() HEARTH_REQUIRES(mutex_) { return told_ || taken_back_; });
            if (taken_back_) made.swap(outcome_);  // empty if takeBack() was first
        }
        try {
            if (made) undo(*made);
        } catch (const std::exception&) {  // it has ended by itself
        }
    }

    static void undo(const ToolOutcome& made) {
        if (const auto* pending = std::get_if<PendingCall>(&made)) pending->cancel();
        const auto* result = std::get_if<ToolResult>(&made);
        if (result != nullptr && result->take_back) result->take_back();
    }

    void settle(std::optional<ToolOutcome> outcome, std::exception_ptr failure) {
        const auto* pending = outcome ? std::get_if<PendingCall>(&*outcome) : nullptr;
        std::shared_ptr<void> subscription;
        if (pending != nullptr) {
            subscription = pending->work->subscribe([weak = weak_from_this()] {
                if (const std::shared_ptr<Wait> self = weak.lock()) self->subscribers_.notify();
            });
        }
        bool wanted = true;
        {
            const MutexLock lock(mutex_);
            wanted = !taken_back_;
            if (wanted) {
                outcome_ = std::move(outcome);
                failure_ = std::move(failure);
                subscription_ = std::move(subscription);
                since_ = clock_.now();
                settled_ = true;
            }
        }
        subscribers_.notify();
        if (!wanted && outcome) undo(*outcome);
    }

    const std::string what_for_;
    const Clock& clock_;
    std::stop_source stop_;
    const std::shared_ptr<controller::ClaimWait> claim_ = std::make_shared<controller::ClaimWait>();
    Subscribers subscribers_;
    mutable Mutex mutex_;
    TimePoint since_ HEARTH_GUARDED_BY(mutex_);       ///< when doing() last changed
    bool settled_ HEARTH_GUARDED_BY(mutex_) = false;  ///< nothing is left to wait for
    Condition known_;                                 ///< told_ or taken_back_ was set
    bool told_ HEARTH_GUARDED_BY(mutex_) = false;     ///< the caller knows its outcome
    bool taken_back_ HEARTH_GUARDED_BY(mutex_) = false;
    std::optional<ToolOutcome> outcome_ HEARTH_GUARDED_BY(mutex_);
    std::exception_ptr failure_ HEARTH_GUARDED_BY(mutex_);
    std::shared_ptr<void> subscription_ HEARTH_GUARDED_BY(mutex_);  ///< to the execution's changes
};

/// The caller's hold on a call. If it is destroyed before the answer, the call is abandoned.
class ClaimWaiters::WaitWork final : public PendingWork {
public:
    explicit WaitWork(std::shared_ptr<Wait> wait) : wait_(std::move(wait)) {}
    WaitWork(const WaitWork&) = delete;
    WaitWork& operator=(const WaitWork&) = delete;
    ~WaitWork() override { wait_->abandon(); }

    bool finished() const override { return wait_->finished(); }
    void wait(std::chrono::milliseconds timeout) override {
        if (const std::shared_ptr<PendingWork> run = wait_->running()) run->wait(timeout);
    }
    std::shared_ptr<void> subscribe(std::function<void()> changed) override {
        return wait_->subscribe(std::move(changed));
    }
    std::optional<controller::OutputChunk> read(std::uint64_t offset,
                                                std::size_t most) const override {
        const std::shared_ptr<PendingWork> run = wait_->running();
        return run ? run->read(offset, most) : std::nullopt;
    }
    std::string executionId() const override {
        const std::shared_ptr<PendingWork> run = wait_->running();
        return run ? run->executionId() : std::string();
    }
    Doing doing() const override { return wait_->doing(); }

private:
    const std::shared_ptr<Wait> wait_;
};

ClaimWaiters::~ClaimWaiters() {
    const MutexLock lock(mutex_);
    for (const Running& one : running_) one.wait->abandon();
    running_.clear();
}

ToolOutcome ClaimWaiters::call(CallContext context, const Handler& handler) {
    context.patience.waits = false;
    std::optional<std::string> what_for;
    try {
        return handler(context);
    } catch (const controller::MustWait& wait) {
        what_for = wait.what();
    }
    context.patience.waits = true;
    return begin(context, handler, *what_for);
}

PendingCall ClaimWaiters::begin(const CallContext& context, const Handler& handler,
                                const std::string& what_for) {
    const MutexLock lock(mutex_);
    std::erase_if(running_, [](const Running& one) { return one.done->load(); });
    const std::string& tenant = context.who.tenant;
    std::shared_ptr<void> place = places_.take(tenant);
    // No call waits in a worker, because all tenants share the workers.
    if (!place && places_.hasItsShare(tenant)) {
        throw Error(ErrorCode::RateLimited,
                    "tenant " + tenant + " has " + std::to_string(places_.held(tenant)) +
                        " calls waiting for a sandbox, the most that a tenant may have")
            .hint("wait until some of them are answered")
            .retryAfter(kTryAgain);
    }
    const auto crowded = [&what_for] {
        return Error(ErrorCode::Unavailable,
                     "too many calls wait already; this one would wait for " + what_for)
            .hint("try again in a moment")
            .retryAfter(kTryAgain);
    };
    if (!place) throw crowded();
    const auto wait = std::make_shared<Wait>(what_for, clock_);
    const auto done = std::make_shared<std::atomic<bool>>(false);
    CallContext patient = context;
    patient.patience.stop = wait->token();
    patient.patience.wait = wait->claim();
    try {
        running_.push_back({std::move(place), wait, done,
                            std::jthread([wait, done, patient = std::move(patient), handler] {
                                wait->run([&] { return handler(patient); });
                                *done = true;
                            })});
    } catch (const std::system_error&) {  // the machine has no more threads
        throw crowded();
    }
    PendingCall pending;
    pending.work = std::make_shared<WaitWork>(wait);
    pending.finish = [wait] { return wait->finish(); };
    pending.cancel = [wait] { wait->takeBack(); };
    return pending;
}

}  // namespace hearth::mcp
