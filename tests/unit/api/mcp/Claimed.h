#pragma once

#include <catch2/catch.hpp>
#include <utility>
#include <variant>

#include "api/mcp/tools/Toolbox.h"

namespace hearth::mcp {

/// The outcome of a call whose sandbox, if it claims one, is ready.
inline ToolOutcome claimed(ToolOutcome outcome) {
    auto* const claiming = std::get_if<ClaimingCall>(&outcome);
    if (claiming == nullptr) return outcome;
    REQUIRE(claiming->claim.run());
    return outcomeOf(claiming->claim.result());
}

}  // namespace hearth::mcp
