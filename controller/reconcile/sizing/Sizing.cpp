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

}  // namespace hearth::controller
