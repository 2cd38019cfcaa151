#pragma once

#include <cstdint>
#include <memory>

#include "api/mcp/http/MessageSink.h"
#include "api/mcp/server/ToolCall.h"
#include "base/Clock.h"

namespace hearth::mcp {

/// The messages that a call sends before its answer: its progress, and its output as log messages,
/// each if the client wants it. Used by the call's task only.
class CallReports {
public:
    /// `news` is set when there is output to send. All references must outlive this object.
    CallReports(const ToolCall& call, MessageSink& sink, std::shared_ptr<Signal> news,
                const Clock& clock);

    /// Sends what is new. `wait`: the thing that the call waits for; null: nothing.
    void send(const Waitable* wait);
    /// When the next progress is due without any news.
    TimePoint due() const { return due_; }

private:
    void sendOutput();
    void sendProgress(const Waitable* wait);

    const ToolCall& call_;
    MessageSink& sink_;
    const std::shared_ptr<Signal> news_;
    const Clock& clock_;
    std::shared_ptr<void> output_;  ///< the subscription to it
    std::uint64_t sent_ = 0;        ///< bytes of output
    std::int64_t progress_ = 0;
    TimePoint reported_{};
    TimePoint due_;
};

}  // namespace hearth::mcp
