#include "api/serve/TraceSetup.h"

#include <cstdlib>
#include <string>

namespace hearth::program {

std::optional<metrics::OtlpSettings> traceSettings() {
    return metrics::otlpSettings([](const char* name) {
        const char* const value = std::getenv(name);
        return std::string(value == nullptr ? "" : value);
    });
}

TraceSetup::TraceSetup(const std::optional<metrics::OtlpSettings>& settings, const Clock& clock,
                       metrics::Log& log, metrics::Metrics& metrics) {
    if (!settings) return;
    exporter_ = std::make_unique<metrics::OtlpExporter>(*settings, clock, log, metrics);
    tracer_ = metrics::Tracer(settings->sampler, *exporter_);
    log.info("trace.sending", {{"to", settings->place()}});
}

}  // namespace hearth::program
