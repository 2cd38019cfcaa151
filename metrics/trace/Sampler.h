#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/trace/TraceContext.h"

namespace hearth::metrics {

/// Decides which traces are recorded: OpenTelemetry's samplers.
class Sampler {
public:
    /// Records nothing.
    Sampler() = default;
    /// `name`: always_on, always_off, traceidratio, or one of these after "parentbased_", which
    /// follows the caller's trace if there is one. `argument`: the share for traceidratio, 0 to 1;
    /// empty: 1. Throws Error(InvalidArgument) that names the environment variable.
    static Sampler of(const std::string& name, const std::string& argument);

    /// `parent` is the caller's trace context; `trace` is the id in question.
    bool takes(const std::optional<TraceContext>& parent, const std::string& trace) const;

private:
    bool follows_parent_ = true;
    /// Records traces whose last 56 bits are below it.
    std::uint64_t below_ = 0;
};

}  // namespace hearth::metrics
