#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "metrics/trace/Sampler.h"
#include "metrics/trace/Span.h"

namespace hearth::metrics {

/// The settings for sending spans, from the variables that OpenTelemetry's SDKs read.
struct OtlpSettings {
    std::string url;  ///< complete, with its path
    /// The URL without its query, which may hold a secret: for messages.
    std::string place() const { return url.substr(0, url.find('?')); }
    std::vector<std::pair<std::string, std::string>> headers;
    bool gzip = false;
    std::string authority;    ///< PEM file; empty: this machine's
    std::string certificate;  ///< the client's own, with `key`; PEM files
    std::string key;
    std::chrono::milliseconds timeout{10'000};   ///< for one try
    std::chrono::milliseconds patience{30'000};  ///< for a batch, with all its tries
    std::chrono::milliseconds delay{5'000};      ///< the longest that a span waits for others
    std::size_t queue = 2'048;                   ///< spans that wait; the rest is dropped
    std::size_t batch = 512;
    Resource resource;  ///< shared by all spans: service.name and the like
    Sampler sampler;
};

/// Returns the value of an environment variable; empty if it is not set, which OpenTelemetry treats
/// the same.
using Environment = std::function<std::string(const char* name)>;

/// Nullopt if traces are not sent: OTEL_EXPORTER_OTLP_ENDPOINT and the like are not set,
/// OTEL_TRACES_EXPORTER is "none", or OTEL_SDK_DISABLED is true. Throws Error(InvalidArgument) that
/// names the variable whose value cannot be used. Source: OpenTelemetry specification 1.x,
/// "Environment Variable Specification" and "OTLP Exporter".
std::optional<OtlpSettings> otlpSettings(const Environment& variable);

}  // namespace hearth::metrics
