#include "controller/egress/policy/WorkspaceEgress.h"

#include <algorithm>

#include "controller/egress/policy/Refused.h"

namespace hearth::broker {
namespace {

constexpr std::size_t kKept = 200;
constexpr int kForbidden = 403;
constexpr int kTooMany = 429;

bool isRefusal(const std::string& decision) {
    return decision != "allowed" && decision != "hit" && decision != "miss";
}

}  // namespace

WorkspaceEgress::WorkspaceEgress(Facts facts, NetworkPolicy policy, EgressLimits limits,
                                 metrics::Log& log, metrics::Metrics& metrics, const Clock& clock)
    : facts_(std::move(facts)),
      policy_(std::move(policy)),
      limits_(limits),
      log_(log),
      metrics_(metrics),
      clock_(clock),
      tokens_(limits.burst),
      refilled_(clock.now()) {}

void WorkspaceEgress::admit() {
    const MutexLock lock(mutex_);
    const TimePoint now = clock_.now();
    tokens_ =
        std::min(limits_.burst, tokens_ + toSeconds(now - refilled_) * limits_.requests_per_second);
    refilled_ = now;
    if (tokens_ < 1) {
        throw Refused(kTooMany, "rate", "this workspace asks too often; wait a second");
    }
    tokens_ -= 1;
    if (totals_.sent + totals_.received >= limits_.bytes) {
        throw Refused(kForbidden, "bytes", "this workspace has carried all the bytes it may");
    }
}

bool WorkspaceEgress::book(std::uint64_t sent, std::uint64_t received) {
    const MutexLock lock(mutex_);
    totals_.sent += sent;
    totals_.received += received;
    return totals_.sent + totals_.received < limits_.bytes;
}

void WorkspaceEgress::record(EgressEntry entry) {
    const bool refused = isRefusal(entry.decision);
    log_.audit("egress.request", {{"workspace", facts_.workspace},
                                  {"tenant", facts_.tenant},
                                  {"pool", facts_.pool},
                                  {"kind", entry.kind},
                                  {"destination", entry.destination},
                                  {"decision", entry.decision},
                                  {"status", entry.status},
                                  {"sent", entry.sent},
                                  {"received", entry.received},
                                  {"ms", entry.duration_ms}});
    metrics_.egress(facts_.pool, entry.kind, entry.decision, entry.sent, entry.received);
    const MutexLock lock(mutex_);
    ++totals_.requests;
    if (refused) ++totals_.refused;
    latest_.push_back(std::move(entry));
    if (latest_.size() > kKept) latest_.pop_front();
}

EgressReport WorkspaceEgress::report() const {
    const MutexLock lock(mutex_);
    EgressReport out = totals_;
    out.latest.assign(latest_.rbegin(), latest_.rend());
    return out;
}

}  // namespace hearth::broker
