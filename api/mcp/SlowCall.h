#pragma once

#include <functional>
#include <memory>

#include "api/mcp/protocol/Calls.h"
#include "api/mcp/tools/Tools.h"

namespace hearth::mcp {

/// A tool call that has outlived its worker thread.
struct SlowCall {
    Json id;
    Json progress_token;  ///< null: none given
    PendingCall pending;
    std::shared_ptr<Call> call;
    TimePoint started_at{};
    /// Makes the answering message; called at most once, never after a cancellation.
    std::function<Json()> answer;
    /// The same, where the agent turned out not to run it.
    std::function<Json(const Error&)> refusal;
};

}  // namespace hearth::mcp
