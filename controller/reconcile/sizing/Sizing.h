#pragma once

#include <cstddef>

#include "base/Clock.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::controller {

/// What a sizing rule looks at.
struct SizingInput {
    const PoolSpec& spec;
    WallTime now;
};

/// How many warm sandboxes one rule wants now; 0 where it has nothing to say. Pure. A new rule is
/// one file beside this one, and its line in Sizing.cpp.
using SizingRule = std::size_t (*)(const SizingInput&);

/// `warm.min` of the pool.
std::size_t staticFloor(const SizingInput& input);

/// How many warm sandboxes the pool should have now: the most that any rule wants, at most
/// `warm.max`.
std::size_t desiredWarm(const SizingInput& input);

}  // namespace hearth::controller
