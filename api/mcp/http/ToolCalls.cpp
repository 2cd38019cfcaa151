#include "api/mcp/http/ToolCalls.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "api/mcp/http/CallReports.h"
#include "base/Error.h"
#include "base/task/Together.h"

namespace hearth::mcp {
namespace {

/// A call of an agent blocks a thread. Four tenants whose agents are silent leave a thread of
/// cancels to a fifth.
constexpr std::size_t kCallThreads = 8;
constexpr std::size_t kCancelThreads = 16;
constexpr unsigned kDoublings = 5;

using StopCallback = std::stop_callback<std::function<void()>>;

std::function<void()> stopping(const ToolCall& call) {
    return [call = call.call] { call->stop(); };
}

/// True if another attempt would get the same error.
bool isFinal(ErrorCode code) {
    return code == ErrorCode::NotFound || code == ErrorCode::Gone || code == ErrorCode::Conflict ||
           code == ErrorCode::Forbidden;
}

}  // namespace

/// Calls whose answers belong together. Those that are not told are left.
class ToolCalls::Leaving {
public:
    Leaving(ToolCalls& calls, std::vector<ToolCall> all) : calls_(calls), all_(std::move(all)) {}
    Leaving(const Leaving&) = delete;
    Leaving& operator=(const Leaving&) = delete;
    ~Leaving() {
        for (const ToolCall& each : all_) calls_.leave(each);
    }
    std::vector<ToolCall>& all() { return all_; }

private:
    ToolCalls& calls_;
    std::vector<ToolCall> all_;
};

ToolCalls::ToolCalls(const Clock& clock, metrics::Log& log, std::chrono::milliseconds pause)
    : clock_(clock),
      log_(log),
      pause_(pause),
      undoing_(clock, kCancelThreads, "mcp-cancels"),
      executor_(clock, kCallThreads, "mcp-calls") {}

void ToolCalls::follow(ToolCall call, std::shared_ptr<MessageSink> sink, std::stop_token stop,
                       HangUp hang_up) {
    const std::string tenant = call.tenant;
    executor_.run(tenant, carry(std::move(call), std::move(sink), std::move(stop), hang_up));
}

void ToolCalls::leave(const ToolCall& call) {
    if (call.call->leftover()) undoing_.run(call.tenant, undo(call.call, call.place));
}

// NOLINTBEGIN(performance-unnecessary-value-param): the frames keep them
Task<std::vector<Json>> ToolCalls::answers(std::vector<ToolCall> calls, std::stop_token stop) {
    Leaving leaving(*this, std::move(calls));
    std::vector<Task<Json>> each;
    for (ToolCall& call : leaving.all()) each.push_back(answerOf(call, stop));
    Task<std::vector<Json>> all = whenAll(std::move(each), clock_);
    std::vector<Json> said = co_await all;
    for (std::size_t i = 0; i < said.size(); ++i) {
        const ToolCall& call = leaving.all()[i];
        if (call.call->cancelled()) {
            said[i] = Json();
        } else {
            call.tell();
        }
    }
    co_return said;
}

Task<Json> ToolCalls::answerOf(ToolCall& call, std::stop_token stop) {
    const StopCallback on_stop(stop, stopping(call));
    while (!call.call->cancelled()) {
        call.goOn(clock_);
        if (call.answer.ended()) co_return call.answer.result();
        auto next = std::make_shared<FirstOf>(
            std::vector<WaitablePtr>{call.answer.wait(), call.call->cancellation()});
        co_await next;
    }
    { const Task<Json> gone = std::move(call.answer); }  // leaves its line
    leave(call);
    co_return Json();
}

Task<> ToolCalls::carry(ToolCall call, std::shared_ptr<MessageSink> sink, std::stop_token stop,
                        HangUp hang_up) {
    try {
        Task<> delivery =
            deliver(call, std::move(call.answer), std::move(sink), std::move(stop), hang_up);
        co_await delivery;
    } catch (const std::exception& error) {  // the top of this task
        log_.error("mcp.slow_call_failed", {{"error", error.what()}});
    }
    leave(call);
}

Task<> ToolCalls::deliver(ToolCall& call, Task<Json> answer, std::shared_ptr<MessageSink> sink,
                          std::stop_token stop, HangUp hang_up) {
    const StopCallback on_stop(stop, stopping(call));
    auto news = std::make_shared<Signal>();
    const std::shared_ptr<void> closing = sink->onClosed([news] { news->set(); });
    CallReports reports(call, *sink, news, clock_);
    while (true) {
        news->clear();
        if (call.call->cancelled()) co_return;
        if (sink->closed()) {
            // Work that a revoked token began belongs to its tenant and continues.
            if (hang_up == HangUp::Cancels && !sink->lapsed() && !call.call->stopping()) {
                call.call->cancel();
            }
            co_return;
        }
        while (!answer.ended() && (!answer.wait() || answer.wait()->over(clock_))) answer.run();
        reports.send(answer.wait().get());
        if (answer.ended()) break;
        auto next = std::make_shared<FirstOf>(
            std::vector<WaitablePtr>{answer.wait(), call.call->cancellation(), news,
                                     std::make_shared<Timer>(reports.due())});
        co_await next;
    }
    if (call.call->cancelled()) co_return;
    call.tell();
    sink->send(answer.result());
}

Task<> ToolCalls::undo(std::shared_ptr<Call> call, [[maybe_unused]] std::shared_ptr<void> place) {
    for (unsigned failures = 0; failures < kTries && !undoOnce(*call); ++failures) {
        const auto pause = pause_ * (1U << std::min(failures, kDoublings));
        auto later = std::make_shared<Timer>(clock_.now() + pause);
        co_await later;
    }
}
// NOLINTEND(performance-unnecessary-value-param)

bool ToolCalls::undoOnce(const Call& call) {
    const std::function<void()> left = call.leftover();
    if (!left) return true;
    try {
        left();
        return true;
    } catch (const Error& error) {
        log_.info("mcp.cancel_failed", {{"error", error.what()}});
        return isFinal(error.code());
    } catch (const std::exception& error) {
        log_.info("mcp.cancel_failed", {{"error", error.what()}});
        return false;
    }
}

}  // namespace hearth::mcp
