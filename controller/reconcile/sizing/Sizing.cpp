#include "controller/reconcile/sizing/Sizing.h"

#include <algorithm>
#include <array>

namespace hearth::controller {
namespace {

constexpr auto kRules = std::to_array<SizingRule>({
    staticFloor,
    predictive,
});

}  // namespace

std::size_t desiredWarm(const SizingInput& input) {
    std::size_t wanted = 0;
    for (const SizingRule rule : kRules) wanted = std::max(wanted, rule(input));
    return std::min<std::size_t>(wanted, rangeNow(input).max);
}

std::size_t wantedUnclaimed(const SizingInput& input, std::size_t desired, std::size_t needed) {
    return std::min(desired + needed, mostUnclaimed(input));
}

std::size_t mostUnclaimed(const SizingInput& input) {
    if (input.spec.on_empty == OnEmpty::Create) return input.spec.max_members;
    return std::max<std::size_t>(rangeNow(input).max, 1);
}

}  // namespace hearth::controller
