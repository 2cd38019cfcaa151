#include "controller/egress/policy/WorkspaceEgress.h"

#include <algorithm>

#include "controller/egress/policy/Refused.h"

namespace hearth::egress {
namespace {

constexpr std::size_t kKept = 200;
/// The most spans of one workspace per kTracedWithin: its share of all that can be sent.
constexpr std::uint32_t kTraced = 100;
constexpr std::chrono::minutes kTracedWithin{1};

bool isRefusal(const std::string& decision) {
    return decision != "allowed" && decision != "hit" && decision != "miss";
}

}  // namespace

WorkspaceEgress::WorkspaceEgress(Facts facts, NetworkPolicy policy, EgressLimits limits,
                                 metrics::Log& log, metrics::Metrics& metrics, const Clock& clock,
                                 const metrics::Tracer& tracer)
    : facts_(std::move(facts)),
      policy_(std::move(policy)),
      limits_(limits),
      log_(log),
      metrics_(metrics),
      clock_(clock),
      tracer_(tracer),
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
        throw Refused(kForbidden, "bytes",
                      "this workspace has used all the bytes that it may transfer");
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
    const char* const kind = kEgressKinds.of(entry.kind);
    log_.audit("egress.request", {{"workspace", facts_.workspace},
                                  {"tenant", facts_.tenant},
                                  {"pool", facts_.pool},
                                  {"kind", kind},
                                  {"destination", entry.destination},
                                  {"decision", entry.decision},
                                  {"status", entry.status},
                                  {"sent", entry.sent},
                                  {"received", entry.received},
                                  {"ms", entry.duration_ms}});
    metrics_.egress(facts_.pool, kind, entry.decision, entry.sent, entry.received);
    const MutexLock lock(mutex_);
    if (tracer_.records(facts_.trace) && mayTrace()) trace(entry, refused);
    ++totals_.requests;
    if (refused) ++totals_.refused;
    latest_.push_back(std::move(entry));
    if (latest_.size() > kKept) latest_.pop_front();
}

bool WorkspaceEgress::mayTrace() {
    const TimePoint now = clock_.now();
    if (now - traced_since_ >= kTracedWithin) {
        traced_since_ = now;
        traced_ = 0;
    }
    return traced_++ < kTraced;
}

void WorkspaceEgress::trace(const EgressEntry& entry, bool refused) const {
    const TimePoint end = clock_.now();
    const auto took = std::chrono::duration<double, std::milli>(entry.duration_ms);
    tracer_.end(
        {.context = tracer_.within(facts_.trace),
         .parent = facts_.trace.span_id,
         .name = std::string("egress ") + kEgressKinds.of(entry.kind),
         .kind = metrics::SpanKind::Client,
         .start = end - std::chrono::duration_cast<std::chrono::nanoseconds>(took),
         .end = end,
         .attributes = {{metrics::kTenantAttribute, facts_.tenant},
                        {"hearth.workspace.id", facts_.workspace},
                        {"hearth.egress.destination", entry.destination},
                        {"hearth.egress.decision", entry.decision},
                        {"hearth.egress.sent", static_cast<std::int64_t>(entry.sent)},
                        {"hearth.egress.received", static_cast<std::int64_t>(entry.received)}},
         .failed = refused,
         .why = refused ? entry.decision : ""});
}

EgressReport WorkspaceEgress::report() const {
    const MutexLock lock(mutex_);
    EgressReport out = totals_;
    out.latest.assign(latest_.rbegin(), latest_.rend());
    return out;
}

}  // namespace hearth::egress
