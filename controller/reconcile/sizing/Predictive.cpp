#include "controller/reconcile/sizing/Sizing.h"

namespace hearth::controller {

Objective objectiveOf(const PoolSpec& spec) {
    return {spec.miss_rate, spec.parallel_creates, spec.warm_max};
}

std::size_t predictive(const SizingInput& input) {
    return input.spec.sizing == SizingMode::Predictive ? input.outlook.target : 0;
}

}  // namespace hearth::controller
