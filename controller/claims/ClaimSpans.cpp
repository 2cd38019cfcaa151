#include "controller/claims/ClaimSpans.h"

#include <array>
#include <chrono>
#include <utility>

namespace hearth::controller {
namespace {

std::chrono::nanoseconds ofMillis(double ms) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double, std::milli>(ms));
}

}  // namespace

void recordClaim(const History& history, const Claimer::Claimed& claimed,
                 const TraceContext& parent) {
    const WorkspaceFacts& facts = claimed.workspace->facts();
    const metrics::Tracer& tracer = history.tracer;
    if (!tracer.records(facts.trace)) return;
    const ClaimLedger& ledger = claimed.ledger;
    const std::array<std::pair<const char*, double>, 7> backwards{{{"bind", ledger.bind_ms},
                                                                   {"pick", ledger.pick_ms},
                                                                   {"warm", ledger.warm_ms},
                                                                   {"create", ledger.create_ms},
                                                                   {"queue", ledger.queue_ms},
                                                                   {"unpack", ledger.unpack_ms},
                                                                   {"pull", ledger.pull_ms}}};
    TimePoint end = claimed.bound;
    for (const auto& [stage, ms] : backwards) {
        if (ms <= 0) continue;
        const TimePoint start = end - ofMillis(ms);
        tracer.end({.context = tracer.within(facts.trace),
                    .parent = facts.trace.span_id,
                    .name = stage,
                    .start = start,
                    .end = end});
        end = start;
    }
    tracer.end({.context = facts.trace,
                .parent = parent.span_id,
                .name = "claim",
                .start = claimed.bound - ofMillis(ledger.total_ms),
                .end = claimed.bound,
                .attributes = {{"hearth.pool", facts.pool},
                               {"hearth.tenant", facts.tenant},
                               {"hearth.workspace.id", facts.id},
                               {"hearth.sandbox.id", facts.sandbox},
                               {"hearth.claim.source", kClaimSources.of(ledger.source)}}});
}

void recordRefusedClaim(const History& history, const Principal& who, const std::string& pool,
                        TimePoint since, ErrorCode why) {
    const metrics::Tracer& tracer = history.tracer;
    if (!tracer.records(who.trace)) return;
    const std::string code(errorCodeName(why));
    tracer.end({.context = tracer.within(who.trace),
                .parent = who.trace.span_id,
                .name = "claim",
                .start = since,
                .end = history.clock.now(),
                .attributes = {{"hearth.pool", pool},
                               {"hearth.tenant", who.tenant},
                               {"hearth.error.code", code}},
                .failed = true,
                .why = code});
}

}  // namespace hearth::controller
