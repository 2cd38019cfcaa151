#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <thread>

#include "base/Clock.h"
#include "base/Fd.h"
#include "base/Mutex.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"

namespace hearth::metrics {

/// The caller, the action, its object, and whether it was allowed. Never a body, a secret or a
/// query's value.
struct AuditEntry {
    std::string surface;     ///< "rest", "mcp", "tools" (without MCP)
    std::string operation;   ///< "createWorkspace", "tools/call run"
    std::string method;      ///< of HTTP; empty elsewhere
    std::string route;       ///< the route's template; empty elsewhere
    std::string resource;    ///< id or name of what it was done to; empty: none, or not known
    std::string tenant;      ///< empty: nobody was made out
    std::string role;        ///< "user", "operator", "admin"
    std::string token;       ///< the token's id; empty: none was needed
    std::string peer;        ///< address
    int status = 0;          ///< of HTTP, or the one that the outcome would have there
    std::string error_code;  ///< "FORBIDDEN"; empty: done
    std::string reason;      ///< more than the caller was told: "jwt_expired"; empty: nothing
    std::string request_id;
    std::string trace_id;
};

/// An append-only file of JSON lines, one per entry. record() only queues; one thread writes, whole
/// lines in one write each, and reopens the file when it was renamed or removed (checked at most
/// once a second) or when reopen() asks. Failed writes are counted, logged and repeated; entries
/// beyond kQueue are lost and counted. Of equal denials (401, 429: same caller, same origin) one a
/// second is written, with their number, so that refused callers cannot fill the disk. Thread-safe.
class AuditLog {
public:
    static constexpr std::size_t kQueue = 20'000;

    /// `path` empty: nothing is recorded. Throws system_error if the file cannot be opened now.
    AuditLog(std::string path, const Clock& clock, Log& log, Metrics& metrics);
    /// Writes what is queued first, for five seconds at most.
    ~AuditLog();
    AuditLog(const AuditLog&) = delete;
    AuditLog& operator=(const AuditLog&) = delete;

    bool enabled() const { return !path_.empty(); }
    void record(const AuditEntry& entry);
    /// The file is opened anew before the next line; for SIGHUP.
    void reopen();
    /// Waits until all that was recorded before has been written or given up; for tests and ends.
    bool flush(std::chrono::milliseconds patience);

    /// The line of an entry, without its line break; `more`: like it since the last line.
    static std::string line(const AuditEntry& entry, WallTime when, std::uint64_t more = 0);

private:
    void write();
    bool open();
    bool moved() const;
    bool append(const std::string& text);
    void failed(const char* what, int error);

    const std::string path_;
    const Clock& clock_;
    Log& log_;
    Metrics& metrics_;
    Fd file_;               ///< of the writing thread
    TimePoint looked_at_;   ///< likewise
    bool failing_ = false;  ///< likewise: said once, until it works again
    bool torn_ = false;     ///< likewise: the file ends within a line
    Mutex mutex_;
    Condition changed_;
    std::deque<std::string> queue_ HEARTH_GUARDED_BY(mutex_);
    struct Denials {
        TimePoint written_at;
        std::uint64_t more = 0;
    };
    /// Whether this denial is one too many now; else `more` is how many were since the last.
    bool folded(const AuditEntry& entry, std::uint64_t& more) HEARTH_REQUIRES(mutex_);
    std::map<std::string, Denials> denials_ HEARTH_GUARDED_BY(mutex_);  ///< by who, where and how
    bool reopen_ HEARTH_GUARDED_BY(mutex_) = false;
    bool stopping_ HEARTH_GUARDED_BY(mutex_) = false;
    bool busy_ HEARTH_GUARDED_BY(mutex_) = false;  ///< a line is being written
    std::jthread thread_;
};

}  // namespace hearth::metrics
