#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/Error.h"
#include "base/Mutex.h"
#include "base/trace/TraceContext.h"
#include "metrics/EndReason.h"
#include "metrics/Exemplars.h"
#include "metrics/GpuMetrics.h"
#include "metrics/TraceMetrics.h"
#include "metrics/UsageMetrics.h"

namespace hearth::metrics {

/// One resource of a tenant's quota.
struct QuotaGauge {
    std::string tenant;
    std::string resource;
    double use = 0;
    std::optional<double> limit;
};

/// Every series that the program exports, in one place. Labels are bounded: never an id.
/// Thread-safe.
///
/// Counters and histograms are updated where the event happens; the reconciler sets the gauges of
/// pool and workspace counts after each of its passes.
class Metrics {
public:
    Metrics();
    Metrics(const Metrics&) = delete;
    Metrics& operator=(const Metrics&) = delete;

    /// Creates all series of a pool at zero, so that a rate over them has a beginning.
    void bornPool(const std::string& pool);
    /// Creates the series of executions in one of a pool's languages; "command" is one of them.
    void bornExecution(const std::string& pool, std::string_view language, std::string_view status);
    void bornReconcile(std::string_view kind);
    /// Removes the series of a deleted pool.
    void forgetPool(const std::string& pool);

    /// A claim that got its workspace; other claims have no latency. `trace`, here and below: the
    /// trace of the measured work; it becomes its bucket's exemplar.
    void claim(const std::string& pool, std::string_view source, double seconds,
               const TraceContext& trace = {});
    /// A claim that was refused, or failed by the server's fault. `pool` empty: none matched it.
    void claimUnserved(const std::string& pool, ErrorCode why);
    void claimCancelled(const std::string& pool);
    void claimStage(const std::string& pool, std::string_view stage, double seconds);
    void claimQueued(const std::string& pool, double seconds);
    void claimQueueDepth(const std::string& pool, double depth);
    void poolExhausted(const std::string& pool);
    /// Sets use and limit of these; removes resources of an earlier call that are missing here.
    void quotas(const std::vector<QuotaGauge>& all);
    void poolSandboxes(const std::string& pool, std::string_view state, double count);
    void poolDesired(const std::string& pool, double count);
    /// Expected claims, the warm sandboxes that they need, and the share of claims that were
    /// missed.
    void poolForecast(const std::string& pool, double per_second, double target, double missed);
    /// The time that ready sandboxes waited for claims.
    void poolIdle(const std::string& pool, double sandbox_seconds);
    void poolDegraded(const std::string& pool, bool degraded);
    void workspaces(const std::string& pool, double count);
    void pausedWorkspaces(const std::string& pool, double count);
    void paused(const std::string& pool);
    void resumed(const std::string& pool, double seconds);
    void sandboxStart(const std::string& pool, double seconds);
    /// Sandboxes that hold a workspace and live but do not answer.
    void suspectSandboxes(const std::string& pool, double count);
    /// Sandboxes with leftovers that cannot be removed.
    void sweepLeftovers(double count);
    void sandboxFailure(const std::string& pool, std::string_view reason);
    /// `lag_seconds`: the delay of an end that was due.
    void reclaim(const std::string& pool, EndReason reason, std::optional<double> lag_seconds = {});
    void execution(const std::string& pool, std::string_view language, std::string_view status,
                   double seconds, double overhead_seconds, const TraceContext& trace = {});
    void contextMade(const std::string& pool);
    /// `reason`: deleted, died, workspace.
    void contextEnded(const std::string& pool, std::string_view reason, double count = 1);
    void reconcile(std::string_view kind, std::string_view result, double seconds);
    void workQueueDepth(std::string_view lane, double depth);
    void workQueueRetry();
    void http(const std::string& route, std::string_view method, int code, double seconds,
              const TraceContext& trace = {});
    void httpRefused(std::string_view reason);
    /// A TLS handshake; `agreed`: client and server agreed on a key.
    void tlsHandshake(bool agreed);
    /// When the shown certificate expires, in seconds since 1970.
    void tlsExpiry(double at);
    /// The threads of a listener that answer requests.
    void httpWorkers(std::string_view listener, double count);
    /// The number of these that are answering now: each of them counts itself.
    prometheus::Gauge& httpWorkersBusy(std::string_view listener);
    /// True if the tokens in force are not those of the file of --config, which cannot be used.
    void tokensStale(bool stale);
    /// An entry of the audit log; `result`: written, failed (tried again), lost.
    void audit(std::string_view result);
    /// Damage of the database; `found`: start (set aside), running (an access failed), missing.
    void databaseDamage(std::string_view found);
    void mcp(std::string_view method, std::string_view tool, std::string_view result);
    void doubleBindRefused();
    /// Creates the counter of a pool whose sandboxes use the mirror, so that an alert finds it
    /// before the first failure.
    void bornMirror(const std::string& pool);
    /// A sandbox's request to the outside; `decision` is one of a fixed set of words.
    void egress(const std::string& pool, std::string_view kind, std::string_view decision,
                std::uint64_t sent, std::uint64_t received);
    void mirrorCacheBytes(double bytes);
    /// Lines that the log's stalled reader, or the access log's disk, did not take.
    void logDropped(std::uint64_t lines);
    /// A history write that the disk did not take, or records that it will never get (`lost`).
    void journalFailed();
    void journalLost(std::uint64_t records);
    /// Bytes that wait for the disk.
    void journalPending(double bytes);
    /// The disk promised to sandboxes, and the most that may be promised.
    void workspaceDisk(double promised, double most);
    /// A disk's free space, and the reserved part of it; `disk`: state, workspaces.
    void disk(std::string_view disk, double free, double reserved);
    /// The store's images, and the bytes of their layouts.
    void images(double count, double bytes);
    /// Reports if the launcher runs, how many operations wait for its answer, and how many uid
    /// ranges are leased to sandboxes.
    void launcher(bool up, double operations, double leases);
    /// Reports if this replica leads; `lease`: by which Lease (empty: it is the only replica).
    void leader(bool leads, const std::string& lease = {});
    /// Operations of one kind that the launcher has not answered before their deadline.
    void launcherOperationsStuck(std::string_view operation, double count);

    GpuMetrics& gpus() { return gpus_; }
    TraceMetrics& traces() { return traces_; }
    UsageMetrics& usage() { return usage_; }

    /// Returns the Prometheus text format 0.0.4, with `process_*` read now.
    std::string render() const;
    /// The same as OpenMetrics 1.0, which has exemplars.
    std::string renderOpen() const;

private:
    template <typename T>
    using Family = prometheus::Family<T>;

    /// The scale of work that takes from less than a millisecond to minutes.
    static const prometheus::Histogram::BucketBoundaries kWorkBuckets;

    /// Creates the counters of claims that get no workspace; `pool` empty: none matched them.
    void bornUnserved(const std::string& pool);
    std::vector<prometheus::MetricFamily> collect() const;

    prometheus::Registry registry_{prometheus::Registry::InsertBehavior::Throw};
    Family<prometheus::Gauge>& pool_sandboxes_;
    Family<prometheus::Gauge>& pool_desired_;
    Family<prometheus::Gauge>& pool_forecast_;
    Family<prometheus::Gauge>& pool_forecast_target_;
    Family<prometheus::Gauge>& pool_miss_ratio_;
    Family<prometheus::Counter>& pool_idle_;
    Family<prometheus::Gauge>& pool_degraded_;
    Family<prometheus::Counter>& claims_;
    Family<prometheus::Histogram>& claim_duration_;
    Family<prometheus::Histogram>& claim_stage_;
    Family<prometheus::Gauge>& claim_queue_depth_;
    Family<prometheus::Gauge>& quota_use_;
    Family<prometheus::Gauge>& quota_limit_;
    Mutex quota_mutex_;
    std::set<prometheus::Gauge*> quota_gauges_ HEARTH_GUARDED_BY(quota_mutex_);
    Family<prometheus::Histogram>& claim_queue_;
    Family<prometheus::Counter>& pool_exhausted_;
    Family<prometheus::Histogram>& sandbox_start_;
    Family<prometheus::Gauge>& suspect_sandboxes_;
    Family<prometheus::Gauge>& sweep_leftovers_;
    Family<prometheus::Counter>& sandbox_failures_;
    Family<prometheus::Counter>& reclaims_;
    Family<prometheus::Histogram>& reclaim_lag_;
    Family<prometheus::Gauge>& workspaces_;
    Family<prometheus::Gauge>& paused_workspaces_;
    Family<prometheus::Counter>& pauses_;
    Family<prometheus::Histogram>& resumes_;
    Family<prometheus::Counter>& executions_;
    Family<prometheus::Histogram>& execution_duration_;
    Family<prometheus::Histogram>& execution_overhead_;
    Family<prometheus::Gauge>& contexts_;
    Family<prometheus::Counter>& context_ends_;
    Family<prometheus::Counter>& reconciles_;
    Family<prometheus::Histogram>& reconcile_duration_;
    Family<prometheus::Gauge>& workqueue_depth_;
    Family<prometheus::Counter>& workqueue_retries_;
    Family<prometheus::Histogram>& http_;
    Family<prometheus::Counter>& http_refused_;
    Family<prometheus::Counter>& tls_handshakes_;
    Family<prometheus::Gauge>& tls_expiry_;
    Family<prometheus::Gauge>& http_workers_;
    Family<prometheus::Gauge>& http_workers_busy_;
    prometheus::Gauge& tokens_stale_;
    Family<prometheus::Counter>& audit_;
    Family<prometheus::Counter>& database_damage_;
    Family<prometheus::Counter>& mcp_;
    Family<prometheus::Counter>& double_bind_;
    Family<prometheus::Counter>& egress_;
    Family<prometheus::Counter>& egress_bytes_;
    Family<prometheus::Gauge>& mirror_cache_;
    prometheus::Counter& log_dropped_;
    prometheus::Counter& journal_failures_;
    prometheus::Counter& journal_lost_;
    prometheus::Gauge& journal_pending_;
    prometheus::Gauge& disk_promised_;
    prometheus::Gauge& disk_most_;
    Family<prometheus::Gauge>& disk_free_;
    Family<prometheus::Gauge>& disk_reserved_;
    Family<prometheus::Gauge>& images_;
    Family<prometheus::Gauge>& image_bytes_;
    Family<prometheus::Gauge>& launcher_up_;
    Family<prometheus::Gauge>& leader_;
    Family<prometheus::Gauge>& launcher_operations_;
    Family<prometheus::Gauge>& uid_leases_;
    Family<prometheus::Gauge>& launcher_stuck_;
    Family<prometheus::Gauge>& build_info_;
    GpuMetrics gpus_{registry_};
    TraceMetrics traces_{registry_};
    UsageMetrics usage_{registry_};
    Exemplars exemplars_;
};

}  // namespace hearth::metrics
