#pragma once

#include <catch2/catch.hpp>
#include <utility>
#include <variant>

#include "api/mcp/tools/Toolbox.h"

namespace hearth::mcp {

/// The result of a call as it is now: work that waits is answered as if the server stopped.
inline ToolResult resultNow(const CallContext& call, ToolOutcome outcome) {
    auto* const work = std::get_if<Task<ToolResult>>(&outcome);
    if (work == nullptr) return std::get<ToolResult>(std::move(outcome));
    if (!work->run()) {
        call.call->stop();
        REQUIRE(work->wait()->ready());
        REQUIRE(work->run());
    }
    return work->result();
}

}  // namespace hearth::mcp
