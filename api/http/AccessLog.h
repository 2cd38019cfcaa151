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

/// A request and its end. What is not known is empty.
struct AccessEntry {
    std::string method;  ///< as sent
    std::string route;   ///< the template that metrics name
    std::string path;    ///< as sent, without the query
    std::string tenant;
    std::string token;  ///< its id, never the token
    std::string client;
    std::string request_id;
    std::string trace_id;  ///< of a recorded trace
    std::string user_agent;
    std::string error_code;
    int status = 0;               ///< 0: the client had gone before there was one
    std::uint64_t bytes_in = 0;   ///< with the heads, in both directions
    std::uint64_t bytes_out = 0;  ///< that the kernel took
    TimePoint started_at{};       ///< when the head was there
    bool whole = true;            ///< false: the answer, or the stream, was cut off
};

/// The facts that a request itself has, without those that give a right: its query, and the path of
/// a signed link. The front fills in the rest.
AccessEntry accessEntry(const Request& request);

/// A LineFile with a line of JSON per finished request. Thread-safe; record() never waits for the
/// disk.
class AccessLog {
public:
    static constexpr mode_t kMode = 0640;

    /// `path` empty: nothing is recorded. Throws system_error if the file cannot be opened now.
    AccessLog(std::string path, const Clock& clock, metrics::Log& log, metrics::Metrics& metrics);

    bool enabled() const { return file_.enabled(); }
    /// The request ends now.
    void record(const AccessEntry& entry);
    void reopen() { file_.reopen(); }
    bool flush(std::chrono::milliseconds patience) { return file_.flush(patience); }

    /// The line of an entry, with its line break.
    static std::string line(const AccessEntry& entry, WallTime when, std::chrono::nanoseconds took);

private:
    const Clock& clock_;
    metrics::LineFile file_;
};

}  // namespace hearth::api
