#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/trace/Span.h"

namespace hearth::metrics {

/// What one message says: spans of one server.
struct SpanBatch {
    const Resource& resource;
    const std::vector<Span>& spans;
    /// What makes nanoseconds since 1970 of a TimePoint's.
    std::chrono::nanoseconds to_wall;
};

/// A text as it may be sent: UTF-8, which receivers insist on, and no longer than anybody reads.
std::string sentText(std::string_view text);

/// An ExportTraceServiceRequest of OTLP 1.x, in its two forms. Source: opentelemetry-proto, the
/// field numbers of trace/v1, common/v1 and collector/trace/v1, and the rules of its JSON mapping:
/// ids in hexadecimal, enums as numbers, 64-bit integers as decimal texts.
std::string otlpProtobuf(const SpanBatch& batch);
std::string otlpJson(const SpanBatch& batch);

/// What a receiver answered: how many spans it did not take, and why.
struct PartialSuccess {
    std::size_t rejected = 0;
    std::string why;
};
/// None where the answer says nothing of the kind, or is not readable: it comes with a success.
PartialSuccess partialSuccessOfProtobuf(const std::string& answer);
PartialSuccess partialSuccessOfJson(const std::string& answer);

}  // namespace hearth::metrics
