#include <array>
#include <type_traits>

#include "metrics/Metrics.h"

// The series with the label pool: they are born with a pool, record what happens in it, and are
// removed with it.

namespace hearth::metrics {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

// A warm claim takes some 100 us, a cold one up to minutes: one scale covers both.
const Buckets kClaimBuckets{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                            0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30,    60};
const Buckets kStartBuckets{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};

/// The errors that a claim may get instead of a workspace; other codes appear when they occur.
constexpr std::array kClaimErrors{ErrorCode::InvalidArgument,
                                  ErrorCode::InvalidSpec,
                                  ErrorCode::NotFound,
                                  ErrorCode::Conflict,
                                  ErrorCode::Gone,
                                  ErrorCode::PayloadTooLarge,
                                  ErrorCode::IdempotencyInFlight,
                                  ErrorCode::Forbidden,
                                  ErrorCode::IdempotencyMismatch,
                                  ErrorCode::QuotaExceeded,
                                  ErrorCode::RateLimited,
                                  ErrorCode::PoolExhausted,
                                  ErrorCode::PoolDegraded,
                                  ErrorCode::DiskFull,
                                  ErrorCode::Unavailable,
                                  ErrorCode::Unsupported,
                                  ErrorCode::SandboxLost,
                                  ErrorCode::Deadline,
                                  ErrorCode::Internal};

prometheus::Labels unserved(const std::string& pool, ErrorCode why) {
    const bool failed =
        why == ErrorCode::SandboxLost || why == ErrorCode::Deadline || why == ErrorCode::Internal;
    return {{"pool", pool},
            {"result", failed ? "failed" : "refused"},
            {"reason", std::string(errorCodeName(why))}};
}

constexpr std::array<const char*, 7> kStates{"creating", "warming",   "ready", "claimed",
                                             "draining", "condemned", "failed"};

template <typename Metric>
void removePool(prometheus::Family<Metric>& family, const std::string& pool) {
    // Family has no look-up by partial labels: the labels that Collect() returns are searched.
    for (const prometheus::MetricFamily& collected : family.Collect()) {
        for (const prometheus::ClientMetric& metric : collected.metric) {
            prometheus::Labels labels;
            bool ours = false;
            for (const prometheus::ClientMetric::Label& label : metric.label) {
                labels[label.name] = label.value;
                ours = ours || (label.name == "pool" && label.value == pool);
            }
            if (!ours) continue;
            if constexpr (std::is_same_v<Metric, prometheus::Histogram>) {
                family.Remove(&family.Add(labels, Buckets{}));
            } else {
                family.Remove(&family.Add(labels));
            }
        }
    }
}

}  // namespace

void Metrics::bornPool(const std::string& pool) {
    suspect_sandboxes_.Add({{"pool", pool}});
    for (const char* state : kStates) pool_sandboxes_.Add({{"pool", pool}, {"state", state}});
    for (const char* reason : kEndReasons.texts) {
        reclaims_.Add({{"pool", pool}, {"reason", reason}});
    }
    for (const char* source : {"warm", "queued", "cold"}) {
        claims_.Add({{"pool", pool}, {"source", source}, {"result", "ok"}});
        claim_duration_.Add({{"pool", pool}, {"source", source}}, kClaimBuckets);
    }
    bornUnserved(pool);
    pool_degraded_.Add({{"pool", pool}});
    for (const char* stage : {"pull", "unpack", "create", "warm", "queue", "pick", "bind"}) {
        claim_stage_.Add({{"pool", pool}, {"stage", stage}}, kClaimBuckets);
    }
    pool_desired_.Add({{"pool", pool}});
    pool_forecast_.Add({{"pool", pool}});
    pool_forecast_target_.Add({{"pool", pool}});
    pool_miss_ratio_.Add({{"pool", pool}});
    pool_idle_.Add({{"pool", pool}});
    claim_queue_depth_.Add({{"pool", pool}});
    claim_queue_.Add({{"pool", pool}}, kClaimBuckets);
    pool_exhausted_.Add({{"pool", pool}});
    workspaces_.Add({{"pool", pool}});
    paused_workspaces_.Add({{"pool", pool}});
    pauses_.Add({{"pool", pool}});
    resumes_.Add({{"pool", pool}}, kWorkBuckets);
    contexts_.Add({{"pool", pool}});
    for (const char* reason : {"deleted", "died", "workspace"}) {
        context_ends_.Add({{"pool", pool}, {"reason", reason}});
    }
    sandbox_start_.Add({{"pool", pool}}, kStartBuckets);
    for (const char* reason : {"create", "lost", "silent"}) {
        sandbox_failures_.Add({{"pool", pool}, {"reason", reason}});
    }
    reclaim_lag_.Add({{"pool", pool}}, kWorkBuckets);
    execution_overhead_.Add({{"pool", pool}}, kWorkBuckets);
    usage_.add({"other", pool}, {});
}

void Metrics::bornUnserved(const std::string& pool) {
    for (const ErrorCode why : kClaimErrors) claims_.Add(unserved(pool, why));
    claims_.Add({{"pool", pool}, {"result", "cancelled"}});
}

void Metrics::bornExecution(const std::string& pool, std::string_view language,
                            std::string_view status) {
    executions_.Add(
        {{"pool", pool}, {"language", std::string(language)}, {"status", std::string(status)}});
}

void Metrics::bornMirror(const std::string& pool) {
    egress_.Add({{"pool", pool}, {"kind", "mirror"}, {"decision", "index_failed"}});
}

void Metrics::forgetPool(const std::string& pool) {
    removePool(pool_sandboxes_, pool);
    removePool(pool_desired_, pool);
    removePool(pool_forecast_, pool);
    removePool(pool_forecast_target_, pool);
    removePool(pool_miss_ratio_, pool);
    removePool(pool_idle_, pool);
    removePool(pool_degraded_, pool);
    removePool(claims_, pool);
    removePool(claim_duration_, pool);
    removePool(claim_stage_, pool);
    removePool(claim_queue_depth_, pool);
    removePool(claim_queue_, pool);
    removePool(pool_exhausted_, pool);
    removePool(sandbox_start_, pool);
    removePool(suspect_sandboxes_, pool);
    removePool(sandbox_failures_, pool);
    removePool(reclaims_, pool);
    removePool(reclaim_lag_, pool);
    removePool(workspaces_, pool);
    removePool(paused_workspaces_, pool);
    removePool(pauses_, pool);
    removePool(resumes_, pool);
    removePool(contexts_, pool);
    removePool(context_ends_, pool);
    removePool(executions_, pool);
    removePool(execution_duration_, pool);
    removePool(execution_overhead_, pool);
    removePool(egress_, pool);
    removePool(egress_bytes_, pool);
    gpus_.forgetPool(pool);
    usage_.forgetPool(pool);
    exemplars_.forgetPool(pool);
}

void Metrics::claim(const std::string& pool, std::string_view source, double seconds,
                    const TraceContext& trace) {
    const std::string from(source);
    claims_.Add({{"pool", pool}, {"source", from}, {"result", "ok"}}).Increment();
    const prometheus::Labels labels{{"pool", pool}, {"source", from}};
    claim_duration_.Add(labels, kClaimBuckets).Observe(seconds);
    exemplars_.note("hearth_claim_duration_seconds", labels, kClaimBuckets, seconds, trace);
}

void Metrics::claimUnserved(const std::string& pool, ErrorCode why) {
    claims_.Add(unserved(pool, why)).Increment();
}

void Metrics::claimCancelled(const std::string& pool) {
    claims_.Add({{"pool", pool}, {"result", "cancelled"}}).Increment();
}

void Metrics::claimStage(const std::string& pool, std::string_view stage, double seconds) {
    claim_stage_.Add({{"pool", pool}, {"stage", std::string(stage)}}, kClaimBuckets)
        .Observe(seconds);
}

void Metrics::claimQueued(const std::string& pool, double seconds) {
    claim_queue_.Add({{"pool", pool}}, kClaimBuckets).Observe(seconds);
}

void Metrics::claimQueueDepth(const std::string& pool, double depth) {
    claim_queue_depth_.Add({{"pool", pool}}).Set(depth);
}

void Metrics::poolExhausted(const std::string& pool) {
    pool_exhausted_.Add({{"pool", pool}}).Increment();
}

void Metrics::poolSandboxes(const std::string& pool, std::string_view state, double count) {
    pool_sandboxes_.Add({{"pool", pool}, {"state", std::string(state)}}).Set(count);
}

void Metrics::poolDesired(const std::string& pool, double count) {
    pool_desired_.Add({{"pool", pool}}).Set(count);
}

void Metrics::poolForecast(const std::string& pool, double per_second, double target,
                           double missed) {
    pool_forecast_.Add({{"pool", pool}}).Set(per_second);
    pool_forecast_target_.Add({{"pool", pool}}).Set(target);
    pool_miss_ratio_.Add({{"pool", pool}}).Set(missed);
}

void Metrics::poolIdle(const std::string& pool, double sandbox_seconds) {
    pool_idle_.Add({{"pool", pool}}).Increment(sandbox_seconds);
}

void Metrics::poolDegraded(const std::string& pool, bool degraded) {
    pool_degraded_.Add({{"pool", pool}}).Set(degraded ? 1 : 0);
}

void Metrics::workspaces(const std::string& pool, double count) {
    workspaces_.Add({{"pool", pool}}).Set(count);
}

void Metrics::pausedWorkspaces(const std::string& pool, double count) {
    paused_workspaces_.Add({{"pool", pool}}).Set(count);
}

void Metrics::paused(const std::string& pool) {
    pauses_.Add({{"pool", pool}}).Increment();
}

void Metrics::resumed(const std::string& pool, double seconds) {
    resumes_.Add({{"pool", pool}}, kWorkBuckets).Observe(seconds);
}

void Metrics::sandboxStart(const std::string& pool, double seconds) {
    sandbox_start_.Add({{"pool", pool}}, kStartBuckets).Observe(seconds);
}

void Metrics::suspectSandboxes(const std::string& pool, double count) {
    suspect_sandboxes_.Add({{"pool", pool}}).Set(count);
}

void Metrics::sandboxFailure(const std::string& pool, std::string_view reason) {
    sandbox_failures_.Add({{"pool", pool}, {"reason", std::string(reason)}}).Increment();
}

void Metrics::reclaim(const std::string& pool, EndReason reason,
                      std::optional<double> lag_seconds) {
    reclaims_.Add({{"pool", pool}, {"reason", kEndReasons.of(reason)}}).Increment();
    if (lag_seconds) reclaim_lag_.Add({{"pool", pool}}, kWorkBuckets).Observe(*lag_seconds);
}

void Metrics::execution(const std::string& pool, std::string_view language, std::string_view status,
                        double seconds, double overhead_seconds, const TraceContext& trace) {
    const std::string lang(language);
    executions_.Add({{"pool", pool}, {"language", lang}, {"status", std::string(status)}})
        .Increment();
    const prometheus::Labels labels{{"pool", pool}, {"language", lang}};
    execution_duration_.Add(labels, kWorkBuckets).Observe(seconds);
    exemplars_.note("hearth_execution_duration_seconds", labels, kWorkBuckets, seconds, trace);
    execution_overhead_.Add({{"pool", pool}}, kWorkBuckets).Observe(overhead_seconds);
}

void Metrics::contextMade(const std::string& pool) {
    contexts_.Add({{"pool", pool}}).Increment();
}

void Metrics::contextEnded(const std::string& pool, std::string_view reason, double count) {
    contexts_.Add({{"pool", pool}}).Decrement(count);
    context_ends_.Add({{"pool", pool}, {"reason", std::string(reason)}}).Increment(count);
}

void Metrics::egress(const std::string& pool, std::string_view kind, std::string_view decision,
                     std::uint64_t sent, std::uint64_t received) {
    egress_.Add({{"pool", pool}, {"kind", std::string(kind)}, {"decision", std::string(decision)}})
        .Increment();
    egress_bytes_.Add({{"pool", pool}, {"direction", "sent"}}).Increment(static_cast<double>(sent));
    egress_bytes_.Add({{"pool", pool}, {"direction", "received"}})
        .Increment(static_cast<double>(received));
}

}  // namespace hearth::metrics
