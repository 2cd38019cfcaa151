#include "controller/reconcile/sizing/Sizing.h"

namespace hearth::controller {

WarmRange rangeNow(const SizingInput& input) {
    return warmRange(input.spec.schedules, ownRange(input.spec), input.now);
}

}  // namespace hearth::controller
