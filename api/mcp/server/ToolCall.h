#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/mcp/protocol/Call.h"
#include "base/task/Task.h"

namespace hearth::mcp {

/// A tools/call on its way to its answer.
struct ToolCall {
    std::shared_ptr<Call> call;
    Json progress_token;  ///< null: none given
    std::string tenant;
    TimePoint started_at;
    /// The lowest log level that the client has asked for. A run's output is sent as log messages
    /// only if there is one: stdout as "info", stderr as "warning".
    std::optional<int> log_severity;
    bool modern = false;
    std::shared_ptr<void> place{};  ///< one place among the tenant's calls
    std::function<void()> told{};   ///< called before the client gets its answer
    /// Makes the answering message; never throws. Destroying it leaves the call.
    Task<Json> answer;

    /// The client gets its answer now.
    void tell() const {
        call->told();
        if (told) told();
    }
    /// Runs its task for as long as that need not wait.
    void goOn(const Clock& clock) {
        while (!answer.ended() && (!answer.wait() || answer.wait()->over(clock))) answer.run();
    }
};

/// Returns what a call waits for, with its place in line: "its turn" if that cannot be told.
std::string describe(const Waitable& wait);

}  // namespace hearth::mcp
