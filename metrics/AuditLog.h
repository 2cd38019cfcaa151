#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "metrics/LineFile.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"

namespace hearth::metrics {

/// The caller, the action, its object and the decision. Never a body, a secret or a query's
/// value.
struct AuditEntry {
    std::string surface;     ///< "rest", "mcp", "tools" (without MCP)
    std::string operation;   ///< "createWorkspace", "tools/call run"
    std::string method;      ///< the HTTP method; empty elsewhere
    std::string route;       ///< the route's template; empty elsewhere
    std::string resource;    ///< id or name of the object; empty: none, or unknown
    std::string tenant;      ///< empty: the caller was not identified
    std::string role;        ///< "user", "operator", "admin"
    std::string token;       ///< the token's id; empty: none was needed
    std::string peer;        ///< address
    int status = 0;          ///< HTTP's, or the status that the outcome would have there
    std::string error_code;  ///< "FORBIDDEN"; empty: no error
    std::string reason;      ///< more than the caller learned: "jwt_expired"; empty: nothing
    std::string request_id;
    std::string trace_id;
};

/// A LineFile with a line of JSON per entry. Of equal denials (401, 403 or 429, the same caller,
/// reason and route) one line per second is written, with their number, so that refused callers
/// cannot fill the disk. Thread-safe.
class AuditLog {
public:
    static constexpr mode_t kMode = 0600;
    /// Kinds of denials that are remembered; one more evicts the kind written least recently.
    static constexpr std::size_t kMostKinds = 1'000;

    /// An empty `path` records nothing. Throws system_error if the file cannot be opened now.
    AuditLog(std::string path, const Clock& clock, Log& log, Metrics& metrics);
    /// Writes the last one of the denials that were only counted since a line, with their number.
    ~AuditLog();
    AuditLog(const AuditLog&) = delete;
    AuditLog& operator=(const AuditLog&) = delete;

    bool enabled() const { return file_.enabled(); }
    void record(const AuditEntry& entry);
    void reopen() { file_.reopen(); }
    bool flush(std::chrono::milliseconds patience) { return file_.flush(patience); }

    /// The line of an entry, without its line break; `more`: equal ones since the last line.
    static std::string line(const AuditEntry& entry, WallTime when, std::uint64_t more = 0);

private:
    /// Equal denials.
    struct Denials {
        std::string kind{};
        TimePoint written_at{};
        std::uint64_t more = 0;  ///< skipped since the last line
        AuditEntry last{};       ///< the last one skipped
        WallTime last_at{};
    };
    /// The lines that a denial causes.
    struct Due {
        bool now = false;              ///< its own
        std::uint64_t more = 0;        ///< equal ones skipped since the last line
        std::list<Denials> evicted{};  ///< at most one kind
    };
    /// Writes a line for denials that were only counted.
    void writeCounted(const std::list<Denials>& kinds);
    /// Counts the denial, or remembers its kind.
    Due fold(const AuditEntry& denial, WallTime when);

    const Clock& clock_;
    Mutex mutex_;
    std::list<Denials> denials_ HEARTH_GUARDED_BY(mutex_);  ///< least recently written first
    /// The keys are views of the kinds in the list.
    std::map<std::string_view, std::list<Denials>::iterator> by_kind_ HEARTH_GUARDED_BY(mutex_);
    LineFile file_;
};

}  // namespace hearth::metrics
