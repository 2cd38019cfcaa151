#include "api/mcp/server/ClaimWaiters.h"

#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "base/Error.h"
#include "base/Mutex.h"
#include "base/Subscribers.h"
#include "base/task/Together.h"

namespace hearth::mcp {
namespace {

constexpr std::chrono::seconds kTryAgain{5};
constexpr std::chrono::seconds kLookAgain{1};

/// Returns what a call waits for, with its place in line.
std::string describe(const Waitable& wait) {
    const auto progress = wait.progress();
    if (!progress) return "its turn";
    std::string text = progress->what_for;
    if (progress->place == 0) return text;
    text += " (place " + std::to_string(progress->place) + " of " + std::to_string(progress->of) +
            " in line";
    if (progress->estimate) {
        text += ", about " + std::to_string(progress->estimate->count()) + " s to go";
    }
    return text + ")";
}

}  // namespace

/// One call: its task makes the outcome, its caller may cancel or leave it meanwhile.
class ClaimWaiters::Wait : public std::enable_shared_from_this<Wait> {
public:
    Wait(std::string what_for, const Clock& clock)
        : clock_(clock), what_for_(std::move(what_for)), since_(clock.now()) {}

    /// The call's task; its end, also by cancelling it, undoes what its caller does not know of.
    static Task<> run(std::shared_ptr<Wait> wait, Task<ClaimOutcome> claim,
                      std::shared_ptr<void> place);
    /// Keeps the task going until the caller knows its outcome or lets go of it.
    void keep(std::shared_ptr<void> job) {
        const MutexLock lock(mutex_);
        if (!told_ && !taken_back_) job_ = std::move(job);
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
        const MutexLock lock(mutex_);
        return {settled_ ? "running" : "waiting for " + what_for_, since_};
    }

    ToolResult finish() {
        std::shared_ptr<void> job;  // ends without the lock
        UniqueMutexLock lock(mutex_);
        if (taken_back_) throw Error(ErrorCode::Unavailable, "the call was cancelled");
        if (!settled_) {  // only a server that stops asks this early
            lock.unlock();
            takeBack();
            throw Error(ErrorCode::Unavailable, "the server is shutting down")
                .hint("try again after its restart");
        }
        told_ = true;
        job.swap(job_);
        if (failure_) std::rethrow_exception(failure_);
        if (auto* result = std::get_if<ToolResult>(&*outcome_)) return std::move(*result);
        const std::function<ToolResult()> rest = std::get<PendingCall>(*outcome_).finish;
        lock.unlock();
        return rest();
    }

    /// The caller has cancelled the call.
    void takeBack() {
        std::optional<ClaimOutcome> made;
        std::shared_ptr<void> job;
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
            job.swap(job_);
        }
        subscribers_.notify();
        if (made) undo(*made);
    }

    /// The client is gone. An execution continues, because the client can find it again. The call's
    /// task ends anything else that was made, because this may run in a shared thread.
    void abandon() {
        std::shared_ptr<void> job;
        {
            const MutexLock lock(mutex_);
            const bool begun = outcome_ && std::holds_alternative<PendingCall>(*outcome_);
            if (taken_back_ || told_ || begun) return;
            taken_back_ = true;
            settled_ = true;
            job.swap(job_);
        }
        subscribers_.notify();
    }

private:
    /// At the end of the call's task.
    struct Undoing {
        Wait& wait;
        ~Undoing() { wait.undoUnlessTold(); }
    };

    void waitsFor(const Waitable& wait) {
        std::string text = describe(wait);
        const MutexLock lock(mutex_);
        what_for_.swap(text);
    }

    /// True if something was made that ends unless the caller is told of it.
    bool isUndone() const HEARTH_REQUIRES(mutex_) {
        const auto* result = outcome_ ? std::get_if<ToolResult>(&*outcome_) : nullptr;
        return result != nullptr && result->take_back && !told_;
    }
    bool mustBeTold() const {
        const MutexLock lock(mutex_);
        return isUndone();
    }

    void undoUnlessTold() noexcept {
        std::optional<ClaimOutcome> made;
        {
            const MutexLock lock(mutex_);
            if (isUndone()) made.swap(outcome_);
        }
        try {
            if (made) undo(*made);
        } catch (const std::exception&) {  // it has ended by itself
        }
    }

    static void undo(const ClaimOutcome& made) {
        if (const auto* pending = std::get_if<PendingCall>(&made)) pending->cancel();
        const auto* result = std::get_if<ToolResult>(&made);
        if (result != nullptr && result->take_back) result->take_back();
    }

    void settle(std::optional<ClaimOutcome> outcome, std::exception_ptr failure) {
        const auto* pending = outcome ? std::get_if<PendingCall>(&*outcome) : nullptr;
        std::shared_ptr<void> subscription;
        if (pending != nullptr) {
            subscription = pending->work->subscribe([weak = weak_from_this()] {
                if (const std::shared_ptr<Wait> self = weak.lock()) self->subscribers_.notify();
            });
        }
        std::optional<ClaimOutcome> unwanted;
        {
            const MutexLock lock(mutex_);
            if (taken_back_) {
                unwanted = std::move(outcome);
            } else {
                outcome_ = std::move(outcome);
                failure_ = std::move(failure);
                subscription_ = std::move(subscription);
                since_ = clock_.now();
                settled_ = true;
            }
        }
        subscribers_.notify();
        if (unwanted) undo(*unwanted);
    }

    const Clock& clock_;
    Subscribers subscribers_;
    mutable Mutex mutex_;
    std::string what_for_ HEARTH_GUARDED_BY(mutex_);
    TimePoint since_ HEARTH_GUARDED_BY(mutex_);       ///< when doing() last changed
    bool settled_ HEARTH_GUARDED_BY(mutex_) = false;  ///< nothing is left to wait for
    bool told_ HEARTH_GUARDED_BY(mutex_) = false;     ///< the caller knows its outcome
    bool taken_back_ HEARTH_GUARDED_BY(mutex_) = false;
    std::optional<ClaimOutcome> outcome_ HEARTH_GUARDED_BY(mutex_);
    std::exception_ptr failure_ HEARTH_GUARDED_BY(mutex_);
    std::shared_ptr<void> subscription_ HEARTH_GUARDED_BY(mutex_);  ///< to the execution's changes
    std::shared_ptr<void> job_ HEARTH_GUARDED_BY(mutex_);           ///< destroying it ends the task
};

// NOLINTBEGIN(performance-unnecessary-value-param): the frame keeps them
Task<> ClaimWaiters::Wait::run(std::shared_ptr<Wait> wait, Task<ClaimOutcome> claim,
                               [[maybe_unused]] std::shared_ptr<void> place) {
    // NOLINTEND(performance-unnecessary-value-param)
    const Undoing undoing{*wait};
    try {
        Task<ClaimOutcome> told = every(kLookAgain, wait->clock_, std::move(claim),
                                        [wait](const Waitable& on) { wait->waitsFor(on); });
        ClaimOutcome outcome = co_await told;
        wait->settle(std::move(outcome), nullptr);
    } catch (...) {
        wait->settle(std::nullopt, std::current_exception());
    }
    auto never = std::make_shared<Timer>(TimePoint::max());
    if (wait->mustBeTold()) co_await never;  // unless its caller takes it
}

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

ToolOutcome ClaimWaiters::call(const std::string& tenant, ClaimingCall call) {
    Task<ClaimOutcome>& claim = call.claim;
    if (claim.run()) return outcomeOf(claim.result());
    const std::string what_for = describe(*claim.wait());
    std::shared_ptr<void> place = placeFor(tenant, what_for);
    const auto wait = std::make_shared<Wait>(what_for, clock_);
    wait->keep(executor_.start(tenant, Wait::run(wait, std::move(claim), std::move(place))));
    PendingCall pending;
    pending.work = std::make_shared<WaitWork>(wait);
    pending.finish = [wait] { return wait->finish(); };
    pending.cancel = [wait] { wait->takeBack(); };
    return pending;
}

std::shared_ptr<void> ClaimWaiters::placeFor(const std::string& tenant,
                                             const std::string& what_for) {
    std::shared_ptr<void> place = places_.take(tenant);
    if (place) return place;
    if (places_.hasItsShare(tenant)) {
        throw Error(ErrorCode::RateLimited,
                    "tenant " + tenant + " has " + std::to_string(places_.held(tenant)) +
                        " calls waiting for a sandbox, the most that a tenant may have")
            .hint("wait until some of them are answered")
            .retryAfter(kTryAgain);
    }
    throw Error(ErrorCode::Unavailable,
                "too many calls wait already; this one would wait for " + what_for)
        .hint("try again in a moment")
        .retryAfter(kTryAgain);
}

}  // namespace hearth::mcp
