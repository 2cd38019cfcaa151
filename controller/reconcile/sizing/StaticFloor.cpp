#include "controller/reconcile/sizing/Sizing.h"

namespace hearth::controller {

std::size_t staticFloor(const SizingInput& input) {
    return rangeNow(input).min;
}

}  // namespace hearth::controller
