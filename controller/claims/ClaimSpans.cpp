#include "controller/claims/ClaimSpans.h"

#include <chrono>

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
    double left = 0;
    eachStage(ledger, [&](const char*, double ms) { left += ms; });
    eachStage(ledger, [&](const char* stage, double ms) {
        const TimePoint start = claimed.bound - ofMillis(left);
        left -= ms;
        if (ms <= 0) return;
        tracer.end({.context = tracer.within(facts.trace),
                    .parent = facts.trace.span_id,
                    .name = stage,
                    .start = start,
                    .end = claimed.bound - ofMillis(left),
                    .attributes = {{metrics::kTenantAttribute, facts.tenant}}});
    });
    tracer.end({.context = facts.trace,
                .parent = parent.span_id,
                .name = "claim",
                .start = claimed.bound - ofMillis(ledger.total_ms),
                .end = claimed.bound,
                .attributes = {{"hearth.pool", facts.pool},
                               {metrics::kTenantAttribute, facts.tenant},
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
                               {metrics::kTenantAttribute, who.tenant},
                               {"hearth.error.code", code}},
                .failed = true,
                .why = code});
}

}  // namespace hearth::controller
