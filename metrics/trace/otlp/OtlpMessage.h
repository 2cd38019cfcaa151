#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/trace/Span.h"

namespace hearth::metrics {

/// The content of one message: spans of one server.
struct SpanBatch {
    const Resource& resource;
    const std::vector<Span>& spans;
    /// The offset from a TimePoint to nanoseconds since 1970.
    std::chrono::nanoseconds to_wall;
};

/// A text in the form that may be sent: UTF-8, which receivers require, and of limited length.
std::string sentText(std::string_view text);

/// An ExportTraceServiceRequest of OTLP 1.x as protobuf. Source: opentelemetry-proto, the field
/// numbers of trace/v1, common/v1 and collector/trace/v1.
std::string otlpProtobuf(const SpanBatch& batch);

/// The receiver's answer: the number of rejected spans, and the reason.
struct PartialSuccess {
    std::size_t rejected = 0;
    std::string why;
};
/// Empty if the answer has no such part or is unreadable: it comes with a success.
PartialSuccess partialSuccessOfProtobuf(const std::string& answer);

}  // namespace hearth::metrics
