#include "api/mcp/http/CallReports.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "api/mcp/http/ToolCalls.h"
#include "api/mcp/protocol/Era.h"

namespace hearth::mcp {
namespace {

/// The most output sent in one log message, and of one call. The result has head and tail.
constexpr std::size_t kLogPiece = 16U << 10U;
constexpr std::uint64_t kLogMost = 1U << 20U;

}  // namespace

CallReports::CallReports(const ToolCall& call, MessageSink& sink, std::shared_ptr<Signal> news,
                         const Clock& clock)
    : call_(call), sink_(sink), news_(std::move(news)), clock_(clock), due_(clock.now()) {}

void CallReports::send(const Waitable* wait) {
    sendOutput();
    const TimePoint now = clock_.now();
    if (now < due_ && now - reported_ < ToolCalls::kProgressLeast) return;
    sendProgress(wait);
    reported_ = now;
    due_ = now + ToolCalls::kProgressEvery;
}

void CallReports::sendOutput() {
    const std::shared_ptr<controller::Execution> execution = call_.call->execution();
    if (!call_.log_severity || !execution) return;
    if (!output_) output_ = execution->subscribe([news = news_] { news->set(); });
    while (sent_ < kLogMost) {
        const auto chunk = execution->read(sent_, kLogPiece);
        if (!chunk || chunk->bytes.empty()) return;
        sent_ = chunk->offset + chunk->bytes.size();
        const std::string level = chunk->channel == 2 ? "warning" : "info";
        if (logSeverity(level) < call_.log_severity) continue;
        sink_.send(notificationMessage(
            "notifications/message",
            {{"level", level}, {"logger", execution->id()}, {"data", toUtf8(chunk->bytes)}}));
    }
}

void CallReports::sendProgress(const Waitable* wait) {
    if (call_.progress_token.is_null() || wait == nullptr) return;
    const bool runs = call_.call->execution() != nullptr;
    if (!runs && !wait->progress()) return;  // it talks with its client itself
    const auto seconds_since = [now = clock_.now()](TimePoint since) {
        return std::int64_t{std::chrono::round<std::chrono::seconds>(now - since).count()};
    };
    progress_ = std::max(progress_ + 1, seconds_since(call_.started_at));
    const TimePoint since = runs ? call_.call->ranSince() : call_.started_at;
    sink_.send(notificationMessage(
        "notifications/progress",
        {{"progressToken", call_.progress_token},
         {"progress", progress_},
         {"message", (runs ? "running" : "waiting for " + describe(*wait)) + " for " +
                         std::to_string(seconds_since(since)) + " s"}}));
}

}  // namespace hearth::mcp
