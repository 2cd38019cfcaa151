#pragma once

#include <cstdint>
#include <string>

#include "base/Json.h"
#include "base/Texts.h"

namespace hearth::controller {

/// Where a claim's sandbox came from. Warm: it was ready. Queued: it existed or was being made, but
/// the claim stood in line for it. Cold: it was made after the request had come.
enum class ClaimSource : std::uint8_t { Warm, Queued, Cold };
inline constexpr Texts<ClaimSource, 3> kClaimSources{{"warm", "queued", "cold"}};

/// The time of each stage of a claim. Stages that a warm sandbox does not need are zero.
struct ClaimLedger {
    ClaimSource source = ClaimSource::Warm;
    double pull_ms = 0;    ///< its image came from a registry
    double unpack_ms = 0;  ///< its image was made ready
    double create_ms = 0;  ///< the sandbox was made
    double warm_ms = 0;    ///< its agent answered
    double queue_ms = 0;   ///< waiting for other work, in addition to the above
    double pick_ms = 0;
    double bind_ms = 0;
    double total_ms = 0;
};
/// Calls `tell(name, milliseconds)` for each stage that the claim went through, in order.
template <typename Tell>
void eachStage(const ClaimLedger& ledger, const Tell& tell) {
    if (ledger.pull_ms > 0) tell("pull", ledger.pull_ms);
    if (ledger.unpack_ms > 0) tell("unpack", ledger.unpack_ms);
    tell("queue", ledger.queue_ms);
    if (ledger.source == ClaimSource::Cold) {
        tell("create", ledger.create_ms);
        tell("warm", ledger.warm_ms);
    }
    tell("pick", ledger.pick_ms);
    tell("bind", ledger.bind_ms);
}
/// The form that clients and the journal use.
Json ledgerJson(const ClaimLedger& ledger);
ClaimLedger ledgerFrom(const Json& json);
/// The value of the Server-Timing header (W3C): the whole claim, with its source, and its stages.
std::string serverTiming(const ClaimLedger& ledger);

}  // namespace hearth::controller
