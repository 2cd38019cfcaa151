#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/mcp/protocol/CancellableCalls.h"
#include "api/mcp/tools/Toolbox.h"

namespace hearth::mcp {

/// A tool call that still runs after its worker thread has left it.
struct PendingToolCall {
    Json id;
    Json progress_token;  ///< null: none given
    PendingCall pending;
    std::shared_ptr<Call> call;
    std::string tenant{};
    std::shared_ptr<void> place{};  ///< one place among the tenant's calls
    TimePoint started_at{};
    /// The lowest log level that the client has asked for; none: no log messages. Output is sent as
    /// log messages while the call runs, stdout as "info", stderr as "warning".
    std::optional<int> log_severity{};
    /// Makes the answering message; called at most once, never after a cancellation.
    std::function<Json()> answer;
    /// Makes the answering message if the agent did not run the call.
    std::function<Json(const Error&)> refusal;
};

/// A call that works in a thread of its own and talks with its client meanwhile.
struct LiveReply {
    Json id;
    Json progress_token;              ///< null: none given
    std::optional<int> log_severity;  ///< messages below it are not wanted
    bool log_wanted = true;
    bool may_ask = false;  ///< true if the revision lets a server ask its client
    std::shared_ptr<Call> call;
    std::shared_ptr<void> place{};  ///< one place among the tenant's calls
    /// Does the work and makes the answering message; never throws.
    std::function<Json(Conversation&)> answer;
};

}  // namespace hearth::mcp
