#pragma once

#include <memory>
#include <optional>

#include "base/Clock.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"
#include "metrics/trace/Tracer.h"
#include "metrics/trace/otlp/OtlpExporter.h"

namespace hearth::program {

/// Reads OpenTelemetry's environment variables. Nullopt: nothing is to be sent. Throws
/// Error(InvalidArgument) that names the variable.
std::optional<metrics::OtlpSettings> traceSettings();

/// The tracer and its exporter. Without settings nothing is recorded.
class TraceSetup {
public:
    /// The references must outlive it, because its destructor still sends, counts and logs.
    TraceSetup(const std::optional<metrics::OtlpSettings>& settings, const Clock& clock,
               metrics::Log& log, metrics::Metrics& metrics);
    const metrics::Tracer& tracer() const { return tracer_; }

private:
    std::unique_ptr<metrics::OtlpExporter> exporter_;
    metrics::Tracer tracer_;
};

}  // namespace hearth::program
