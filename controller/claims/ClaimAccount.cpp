#include "controller/claims/ClaimAccount.h"

#include "base/Error.h"
#include "controller/claims/ClaimSpans.h"

namespace hearth::controller {

void ClaimAccount::served(const Claimer::Claimed& claimed, const TraceContext& request) const {
    const WorkspaceFacts& facts = claimed.workspace->facts();
    const ClaimLedger& ledger = claimed.ledger;
    const char* source = kClaimSources.of(ledger.source);
    history_.metrics.claim(facts.pool, source, ledger.total_ms / 1000,
                           history_.tracer.recorded(facts.trace));
    recordClaim(history_, claimed, request);
    eachStage(ledger, [&](const char* name, double ms) {
        history_.metrics.claimStage(facts.pool, name, ms / 1000);
    });
    history_.log.info("workspace.bound", {{"workspace", facts.id},
                                          {"sandbox", facts.sandbox},
                                          {"pool", facts.pool},
                                          {"tenant", facts.tenant},
                                          {"source", source},
                                          {"seconds", ledger.total_ms / 1000},
                                          {"pull_s", ledger.pull_ms / 1000},
                                          {"unpack_s", ledger.unpack_ms / 1000},
                                          {"create_s", ledger.create_ms / 1000},
                                          {"warm_s", ledger.warm_ms / 1000},
                                          {"queue_s", ledger.queue_ms / 1000},
                                          {"pick_s", ledger.pick_ms / 1000},
                                          {"bind_s", ledger.bind_ms / 1000},
                                          {"trace", facts.trace.trace_id}});
}

void ClaimAccount::unserved(const Principal& who, const std::string& pool, TimePoint since,
                            const std::exception& why) const {
    const auto* told = dynamic_cast<const Error*>(&why);
    const ErrorCode code = told ? told->code() : ErrorCode::Internal;
    history_.metrics.claimUnserved(pool, code);
    recordRefusedClaim(history_, who, pool, since, code);
    // These errors may quote the request.
    const bool quotes = code == ErrorCode::InvalidArgument || code == ErrorCode::InvalidSpec ||
                        code == ErrorCode::NotFound;
    history_.log.info("claim.refused", {{"pool", pool},
                                        {"tenant", who.tenant},
                                        {"code", errorCodeName(code)},
                                        {"why", quotes ? "" : why.what()},
                                        {"seconds", toSeconds(history_.clock.now() - since)},
                                        {"trace", who.trace.trace_id}});
}

void ClaimAccount::cancelled(const Principal& who, const std::string& pool, TimePoint since) const {
    history_.metrics.claimCancelled(pool);
    history_.log.info("claim.cancelled", {{"pool", pool},
                                          {"tenant", who.tenant},
                                          {"seconds", toSeconds(history_.clock.now() - since)},
                                          {"trace", who.trace.trace_id}});
}

}  // namespace hearth::controller
