#include "controller/reconcile/sizing/Sizing.h"

namespace hearth::controller {

std::size_t staticFloor(const SizingInput& input) {
    return input.spec.warm_min;
}

}  // namespace hearth::controller
