#include <algorithm>
#include <array>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "base/Json.h"
#include "base/Version.h"
#include "metrics/trace/otlp/OtlpMessage.h"

namespace hearth::metrics {
namespace {

using protozero::pbf_writer;

constexpr std::int32_t kFailed = 2;
constexpr const char* kScope = "hearth";
constexpr std::size_t kLongestSentText = 1'024;
constexpr std::size_t kMostIdBytes = 16;

std::uint64_t nanos(TimePoint at, std::chrono::nanoseconds to_wall) {
    return static_cast<std::uint64_t>((at.time_since_epoch() + to_wall).count());
}

unsigned digit(char c) {
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
}

/// Ids are lower-case hexadecimal with an even number of digits; on the wire they are bytes.
void writeId(pbf_writer& to, protozero::pbf_tag_type field, const std::string& hex) {
    std::array<char, kMostIdBytes> bytes{};
    const std::size_t size = std::min(hex.size() / 2, bytes.size());
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<char>(digit(hex[2 * i]) << 4U | digit(hex[2 * i + 1]));
    }
    to.add_bytes(field, bytes.data(), size);
}

void writeKey(pbf_writer& pair, std::string_view key) {
    pair.add_string(1, key.data(), key.size());
}

void writeResource(pbf_writer& to, const Resource& all) {
    for (const auto& [key, text] : all) {
        pbf_writer pair(to, 1);
        writeKey(pair, key);
        pbf_writer value(pair, 2);
        value.add_string(1, sentText(text));
    }
}

/// Writes KeyValue of common/v1, with its AnyValue.
void writeAttributes(pbf_writer& to, protozero::pbf_tag_type field, const Attributes& all) {
    for (const Attribute& each : all) {
        pbf_writer pair(to, field);
        writeKey(pair, each.key);
        pbf_writer value(pair, 2);
        if (const auto* text = std::get_if<std::string>(&each.value))
            value.add_string(1, sentText(*text));
        if (const auto* truth = std::get_if<bool>(&each.value)) value.add_bool(2, *truth);
        if (const auto* whole = std::get_if<std::int64_t>(&each.value)) value.add_int64(3, *whole);
        if (const auto* number = std::get_if<double>(&each.value)) value.add_double(4, *number);
    }
}

void writeSpan(pbf_writer& to, const Span& span, std::chrono::nanoseconds to_wall) {
    writeId(to, 1, span.context.trace_id);
    writeId(to, 2, span.context.span_id);
    if (!span.context.state.empty()) to.add_string(3, span.context.state);
    if (!span.parent.empty()) writeId(to, 4, span.parent);
    to.add_string(5, sentText(span.name));
    to.add_enum(6, static_cast<std::int32_t>(span.kind));
    to.add_fixed64(7, nanos(span.start, to_wall));
    to.add_fixed64(8, nanos(span.end, to_wall));
    writeAttributes(to, 9, span.attributes);
    for (const SpanEvent& each : span.events) {
        pbf_writer event(to, 11);
        event.add_fixed64(1, nanos(each.at, to_wall));
        event.add_string(2, each.name);
    }
    for (const TraceContext& each : span.links) {
        pbf_writer link(to, 13);
        writeId(link, 1, each.trace_id);
        writeId(link, 2, each.span_id);
        if (!each.state.empty()) link.add_string(3, each.state);
    }
    if (!span.failed) return;
    pbf_writer status(to, 15);
    if (!span.why.empty()) status.add_string(2, sentText(span.why));
    status.add_enum(3, kFailed);
}

}  // namespace

std::string sentText(std::string_view text) {
    return toUtf8(text.substr(0, kLongestSentText));
}

std::string otlpProtobuf(const SpanBatch& batch) {
    std::string out;
    pbf_writer request(out);
    {
        pbf_writer of_resource(request, 1);
        {
            pbf_writer resource(of_resource, 1);
            writeResource(resource, batch.resource);
        }
        pbf_writer of_scope(of_resource, 2);
        {
            pbf_writer scope(of_scope, 1);
            scope.add_string(1, kScope);
            scope.add_string(2, kHearthVersion);
        }
        for (const Span& each : batch.spans) {
            pbf_writer span(of_scope, 2);
            writeSpan(span, each, batch.to_wall);
        }
    }
    return out;
}

PartialSuccess partialSuccessOfProtobuf(const std::string& answer) {
    PartialSuccess told;
    try {
        protozero::pbf_reader response(answer);
        while (response.next(1)) {
            protozero::pbf_reader partial = response.get_message();
            while (partial.next()) {
                if (partial.tag() == 1) {
                    const std::int64_t spans = partial.get_int64();
                    told.rejected = spans > 0 ? static_cast<std::size_t>(spans) : 0;
                } else if (partial.tag() == 2) {
                    told.why = partial.get_string();
                } else {
                    partial.skip();
                }
            }
        }
    } catch (const std::exception&) {  // the spans have arrived, whatever the answer says
        return {};
    }
    return told;
}

}  // namespace hearth::metrics
