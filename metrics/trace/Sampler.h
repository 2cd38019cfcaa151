#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/trace/TraceContext.h"

namespace hearth::metrics {

/// Which traces are recorded: OpenTelemetry's samplers.
class Sampler {
public:
    /// Records nothing.
    Sampler() = default;
    /// `name`: always_on, always_off, traceidratio, or one of these behind "parentbased_", which
    /// does as the caller's trace does where there is one. `argument`: the share of traceidratio, 0
    /// to 1; empty: 1. Throws Error(InvalidArgument) that names the variable of the environment.
    static Sampler of(const std::string& name, const std::string& argument);

    /// `parent` is what the caller says of its trace; `trace` the id in question.
    bool takes(const std::optional<TraceContext>& parent, const std::string& trace) const;

private:
    bool follows_parent_ = true;
    /// Traces whose last 56 bits are below it.
    std::uint64_t below_ = 0;
};

}  // namespace hearth::metrics
