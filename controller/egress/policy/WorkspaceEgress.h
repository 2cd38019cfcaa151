#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "base/Texts.h"
#include "controller/egress/policy/NetworkPolicy.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"
#include "metrics/trace/Tracer.h"

namespace hearth::egress {

/// The way of a request to the outside. Https: a request in a tunnel, with credentials added.
enum class EgressKind : std::uint8_t { Mirror, Http, Tunnel, Https };
inline constexpr Texts<EgressKind, 4> kEgressKinds{{"mirror", "http", "tunnel", "https"}};

/// One request to the outside, as it is kept and shown: never with a body, a header or a path.
struct EgressEntry {
    WallTime at{};
    EgressKind kind = EgressKind::Mirror;
    std::string destination;  ///< "host:port", or "pypi:numpy" for a mirror
    std::string decision;     ///< allowed, hit, miss, or the reason of a refusal
    int status = 0;           ///< of an answer made here; 0 if it came from outside
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    double duration_ms = 0;
};

/// The account of a workspace's requests: totals, and the recent ones.
struct EgressReport {
    std::uint64_t requests = 0;
    std::uint64_t refused = 0;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::vector<EgressEntry> latest;  ///< newest first
};

/// How much a workspace may send out.
struct EgressLimits {
    double requests_per_second = 50;
    double burst = 500;                 ///< npm sends several hundred requests at once
    std::uint64_t bytes = 8ULL << 30U;  ///< both ways, in its whole lifetime
    std::uint32_t connections = 32;     ///< at a time
};

/// Policy, limits and record of one workspace's way out. Thread-safe.
class WorkspaceEgress {
public:
    struct Facts {
        std::string workspace;
        std::string tenant;
        std::string pool;
        TraceContext trace = {};  ///< its claim's span
    };

    WorkspaceEgress(Facts facts, NetworkPolicy policy, EgressLimits limits, metrics::Log& log,
                    metrics::Metrics& metrics, const Clock& clock, const metrics::Tracer& tracer);

    const Facts& facts() const noexcept { return facts_; }
    const NetworkPolicy& policy() const noexcept { return policy_; }
    const EgressLimits& limits() const noexcept { return limits_; }

    /// Takes one request from the rate limit. Throws Refused (429) when the limit is used up, or
    /// (403) when the workspace has carried all the bytes it may.
    void admit();
    /// Books bytes while a connection carries them; false when the workspace may carry no more.
    bool book(std::uint64_t sent, std::uint64_t received);
    /// Writes the audit line, counts, and keeps the entry among the latest. Its bytes are already
    /// booked. Its span belongs to the workspace's claim, because it is unknown which execution
    /// sent the request.
    void record(EgressEntry entry);
    EgressReport report() const;

private:
    void trace(const EgressEntry& entry, bool refused) const;
    bool mayTrace() HEARTH_REQUIRES(mutex_);

    const Facts facts_;
    const NetworkPolicy policy_;
    const EgressLimits limits_;
    metrics::Log& log_;
    metrics::Metrics& metrics_;
    const Clock& clock_;
    const metrics::Tracer& tracer_;
    mutable Mutex mutex_;
    double tokens_ HEARTH_GUARDED_BY(mutex_);
    TimePoint refilled_ HEARTH_GUARDED_BY(mutex_);
    TimePoint traced_since_ HEARTH_GUARDED_BY(mutex_){};
    std::uint32_t traced_ HEARTH_GUARDED_BY(mutex_) = 0;
    EgressReport totals_ HEARTH_GUARDED_BY(mutex_);             // without the latest
    std::deque<EgressEntry> latest_ HEARTH_GUARDED_BY(mutex_);  // newest last
};

}  // namespace hearth::egress
