#include "api/serve/TraceSetup.h"

#include <cstdlib>
#include <string>

namespace hearth::program {

TraceSetup::TraceSetup()
    : settings_(metrics::otlpSettings([](const char* name) {
          const char* const value = std::getenv(name);
          return std::string(value == nullptr ? "" : value);
      })) {}

void TraceSetup::begin(const Clock& clock, metrics::Log& log, metrics::Metrics& metrics) {
    if (!settings_) return;
    exporter_ = std::make_unique<metrics::OtlpExporter>(*settings_, clock, log, metrics);
    tracer_ = metrics::Tracer(settings_->sampler, *exporter_);
    log.info("trace.sending",
             {{"to", settings_->url}, {"format", settings_->json ? "http/json" : "http/protobuf"}});
}

}  // namespace hearth::program
