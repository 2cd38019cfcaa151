#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "api/http/Handler.h"
#include "base/Clock.h"
#include "metrics/LineFile.h"
#include "metrics/Metrics.h"

namespace hearth::api {

/// A request and its end. Unknown fields are empty.
struct AccessEntry {
    std::string method;  ///< as sent
    std::string route;   ///< the template that metrics use
    std::string path;    ///< as sent, without the query
    std::string tenant;
    std::string token;  ///< its id, never the token
    std::string client;
    std::string request_id;
    std::string trace_id;  ///< only if the trace is recorded
    std::string user_agent;
    std::string error_code;
    int status = 0;               ///< 0: the client left before there was one
    std::uint64_t bytes_in = 0;   ///< in both directions, with the heads
    std::uint64_t bytes_out = 0;  ///< taken by the kernel
    TimePoint started_at{};       ///< when the head was complete
    bool whole = true;            ///< false: the answer, or the stream, was cut off
};

/// The facts of the request itself, except the parts that give a right: its query, and the path of
/// a signed link. The front fills in the rest.
AccessEntry accessEntry(const Request& request);

/// A LineFile with a line of JSON per finished request. Thread-safe; record() never waits for the
/// disk.
class AccessLog {
public:
    static constexpr mode_t kMode = 0640;

    /// An empty `path` records nothing. Throws system_error if the file cannot be opened now.
    AccessLog(std::string path, const Clock& clock, metrics::Log& log, metrics::Metrics& metrics);

    bool enabled() const { return file_.enabled(); }
    /// Records a request that ends now.
    void record(const AccessEntry& entry);
    void reopen() { file_.reopen(); }
    bool flush(std::chrono::milliseconds patience) { return file_.flush(patience); }

    /// Returns the line of an entry, with its line break.
    static std::string line(const AccessEntry& entry, WallTime when, std::chrono::nanoseconds took);

private:
    const Clock& clock_;
    metrics::LineFile file_;
};

}  // namespace hearth::api
