#include "api/http/AccessLog.h"

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "api/http/RequestFacts.h"
#include "base/JsonText.h"

namespace hearth::api {
namespace {

/// The longest logged text in bytes, before it is escaped.
constexpr std::size_t kLongestText = 256;
constexpr std::size_t kLongestPath = 2048;
/// One write takes the lines of this period, so that a request rarely wakes the writing thread.
constexpr std::chrono::milliseconds kGather{50};

void key(std::string& line, std::string_view name) {
    line.append(line.size() == 1 ? "\"" : ",\"").append(name).append("\":");
}

void text(std::string& line, std::string_view name, std::string_view value,
          std::size_t longest = kLongestText) {
    key(line, name);
    if (value.empty()) {
        line.append("null");
        return;
    }
    line.push_back('"');
    appendJsonText(line, value.substr(0, longest));
    line.push_back('"');
}

void number(std::string& line, std::string_view name, std::uint64_t value) {
    key(line, name);
    line.append(std::to_string(value));
}

}  // namespace

AccessEntry accessEntry(const Request& request) {
    AccessEntry entry;
    entry.method = request.method();
    entry.path = shownPath(request);
    entry.client = request.peer();
    entry.request_id = request.id();
    entry.user_agent = request.header("User-Agent").value_or("");
    entry.started_at = request.startedAt();
    return entry;
}

AccessLog::AccessLog(std::string path, const Clock& clock, metrics::Log& log,
                     metrics::Metrics& metrics)
    : clock_(clock),
      file_({.path = std::move(path),
             .mode = kMode,
             .name = "the access log",
             .event = "access_log",
             .gather = kGather,
             .count =
                 [&metrics](metrics::LineFate fate) {
                     if (fate == metrics::LineFate::Lost) metrics.logDropped(1);
                 }},
            clock, log) {}

std::string AccessLog::line(const AccessEntry& entry, WallTime when,
                            std::chrono::nanoseconds took) {
    std::string line;
    line.reserve(640);
    line.push_back('{');
    text(line, "time", formatRfc3339(when));
    text(line, "method", entry.method);
    text(line, "route", entry.route);
    text(line, "path", entry.path, kLongestPath);
    key(line, "status");
    line.append(entry.status == 0 ? "null" : std::to_string(entry.status));
    text(line, "errorCode", entry.error_code);
    number(line, "bytesIn", entry.bytes_in);
    number(line, "bytesOut", entry.bytes_out);
    key(line, "durationMs");
    std::array<char, 32> millis{};
    const auto end = std::to_chars(millis.data(), millis.data() + millis.size(), toMillis(took),
                                   std::chars_format::fixed, 3);
    line.append(millis.data(), end.ptr);
    key(line, "whole");
    line.append(entry.whole ? "true" : "false");
    text(line, "tenant", entry.tenant);
    text(line, "token", entry.token);
    text(line, "client", entry.client);
    text(line, "requestId", entry.request_id);
    text(line, "traceId", entry.trace_id);
    text(line, "userAgent", entry.user_agent);
    return line.append("}\n");
}

void AccessLog::record(const AccessEntry& entry) {
    if (!enabled()) return;
    file_.add(line(entry, clock_.wall(), clock_.now() - entry.started_at));
}

}  // namespace hearth::api
