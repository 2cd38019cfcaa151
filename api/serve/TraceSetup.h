#pragma once

#include <memory>
#include <optional>

#include "base/Clock.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"
#include "metrics/trace/Tracer.h"
#include "metrics/trace/otlp/OtlpExporter.h"

namespace hearth::program {

/// Traces and their way out, as OpenTelemetry's variables of the environment ask for. Without them
/// nothing is recorded.
class TraceSetup {
public:
    /// Reads the environment. Throws Error(InvalidArgument) that names the variable.
    TraceSetup();
    /// From now on spans are sent, if the environment says where to. The references outlive this.
    void begin(const Clock& clock, metrics::Log& log, metrics::Metrics& metrics);
    const metrics::Tracer& tracer() const { return tracer_; }

private:
    std::optional<metrics::OtlpSettings> settings_;
    std::unique_ptr<metrics::OtlpExporter> exporter_;
    metrics::Tracer tracer_;
};

}  // namespace hearth::program
