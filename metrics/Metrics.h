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

    /// Registers a family as hearth_<name>.
    Family<prometheus::Gauge>& gauge(const std::string& name, const std::string& help);
    Family<prometheus::Counter>& counter(const std::string& name, const std::string& help);
    Family<prometheus::Histogram>& histogram(const std::string& name, const std::string& help);
    /// Creates the counters of claims that get no workspace; `pool` empty: none matched them.
    void bornUnserved(const std::string& pool);
    std::vector<prometheus::MetricFamily> collect() const;

    prometheus::Registry registry_{prometheus::Registry::InsertBehavior::Throw};
    Family<prometheus::Gauge>& pool_sandboxes_ = gauge("pool_sandboxes", "Sandboxes by state");
    Family<prometheus::Gauge>& pool_desired_ =
        gauge("pool_desired_sandboxes", "Warm sandboxes asked for");
    Family<prometheus::Gauge>& pool_forecast_ =
        gauge("pool_forecast_claims_per_second", "Claims that the pool's forecast expects");
    Family<prometheus::Gauge>& pool_forecast_target_ =
        gauge("pool_forecast_sandboxes", "Warm sandboxes that the forecast needs");
    Family<prometheus::Gauge>& pool_miss_ratio_ =
        gauge("pool_miss_ratio", "Share of recent claims that found no ready sandbox");
    Family<prometheus::Counter>& pool_idle_ =
        counter("pool_idle_sandbox_seconds_total", "Time that ready sandboxes waited for claims");
    Family<prometheus::Gauge>& pool_degraded_ =
        gauge("pool_degraded", "1 while the pool cannot make sandboxes, else 0");
    Family<prometheus::Counter>& claims_ =
        counter("claims_total",
                "Claims by result: ok by source, refused and failed by reason, or cancelled");
    Family<prometheus::Histogram>& claim_duration_ =
        histogram("claim_duration_seconds", "Time from the request to the bound workspace");
    Family<prometheus::Histogram>& claim_stage_ =
        histogram("claim_stage_seconds", "Time of each stage");
    Family<prometheus::Gauge>& claim_queue_depth_ = gauge("claim_queue_depth", "Claims that wait");
    Family<prometheus::Gauge>& quota_use_ =
        gauge("tenant_quota_use", "Resources that a tenant with a quota of its own holds");
    Family<prometheus::Gauge>& quota_limit_ =
        gauge("tenant_quota_limit", "The limit of its quota; absent without a limit");
    Mutex quota_mutex_;
    std::set<prometheus::Gauge*> quota_gauges_ HEARTH_GUARDED_BY(quota_mutex_);
    Family<prometheus::Histogram>& claim_queue_ =
        histogram("claim_queue_seconds", "Time in line of claims that got a sandbox");
    Family<prometheus::Counter>& pool_exhausted_ =
        counter("pool_exhausted_total", "Claims that found no warm sandbox");
    Family<prometheus::Histogram>& sandbox_start_ =
        histogram("sandbox_start_seconds", "Time from create to a ready agent");
    Family<prometheus::Gauge>& suspect_sandboxes_ =
        gauge("suspect_sandboxes",
              "Sandboxes with a workspace that run but do not answer; they are asked again");
    Family<prometheus::Gauge>& sweep_leftovers_ = gauge(
        "sweep_leftovers", "Ended sandboxes that cannot be removed completely; it is tried again");
    Family<prometheus::Counter>& sandbox_failures_ =
        counter("sandbox_failures_total", "Sandboxes that failed, by reason");
    Family<prometheus::Counter>& reclaims_ = counter("reclaims_total", "Ended sandboxes by reason");
    Family<prometheus::Histogram>& reclaim_lag_ =
        histogram("reclaim_lag_seconds", "Time from the deadline of a workspace to its end");
    Family<prometheus::Gauge>& workspaces_ = gauge("workspaces", "Active and paused workspaces");
    Family<prometheus::Gauge>& paused_workspaces_ = gauge("paused_workspaces", "Paused workspaces");
    Family<prometheus::Counter>& pauses_ =
        counter("pauses_total", "Idle workspaces that were paused");
    Family<prometheus::Histogram>& resumes_ =
        histogram("resume_seconds", "From a call to a paused workspace until its processes run");
    Family<prometheus::Counter>& executions_ = counter("executions_total", "Executions by status");
    Family<prometheus::Histogram>& execution_duration_ =
        histogram("execution_duration_seconds", "Time the work ran");
    Family<prometheus::Histogram>& execution_overhead_ =
        histogram("execution_overhead_seconds", "Time the server added to the work");
    Family<prometheus::Gauge>& contexts_ = gauge("contexts", "Stateful interpreters");
    Family<prometheus::Counter>& context_ends_ =
        counter("context_ends_total", "Ended contexts by reason");
    Family<prometheus::Counter>& reconciles_ =
        counter("reconcile_total", "Reconciliations by result");
    Family<prometheus::Histogram>& reconcile_duration_ =
        histogram("reconcile_duration_seconds", "Time of a reconciliation");
    Family<prometheus::Gauge>& workqueue_depth_ =
        gauge("workqueue_depth", "Keys that wait for a worker, by lane");
    Family<prometheus::Counter>& workqueue_retries_ =
        counter("workqueue_retries_total", "Keys put back after a failure");
    Family<prometheus::Histogram>& http_ =
        histogram("http_request_duration_seconds", "Time of HTTP requests by route");
    Family<prometheus::Counter>& http_refused_ = counter(
        "http_connections_refused_total", "Connections and requests refused before routing");
    Family<prometheus::Counter>& tls_handshakes_ =
        counter("tls_handshakes_total", "TLS connections by the result of their handshake");
    Family<prometheus::Gauge>& tls_expiry_ =
        gauge("tls_certificate_expiry_timestamp_seconds",
              "When the server's certificate expires; 0 without TLS");
    Family<prometheus::Gauge>& http_workers_ =
        gauge("http_workers", "Threads that answer requests, by listener");
    Family<prometheus::Gauge>& http_workers_busy_ =
        gauge("http_workers_busy", "Threads that answer a request now, by listener");
    prometheus::Gauge& tokens_stale_ =
        gauge("tokens_file_stale",
              "1 while the file of --config cannot be used: its previous tokens stay in force")
            .Add({});
    Family<prometheus::Counter>& audit_ =
        counter("audit_entries_total",
                "Entries of the audit log: written, failed and tried again, or lost");
    Family<prometheus::Counter>& database_damage_ =
        counter("database_damage_total", "Damage of the database, by where it was found");
    Family<prometheus::Counter>& mcp_ = counter("mcp_requests_total", "MCP requests");
    Family<prometheus::Counter>& double_bind_ = counter(
        "double_bind_refused_total", "Binds that an agent refused because another claim holds it");
    Family<prometheus::Counter>& egress_ =
        counter("egress_requests_total", "Requests of sandboxes to the outside, by decision");
    Family<prometheus::Counter>& egress_bytes_ =
        counter("egress_bytes_total", "Bytes that sandboxes sent to the outside and received");
    Family<prometheus::Gauge>& mirror_cache_ =
        gauge("mirror_cache_bytes", "Files of package indexes that are kept");
    prometheus::Counter& log_dropped_ =
        counter("log_lines_dropped_total",
                "Lines of the log and the access log that were not written in time")
            .Add({});
    prometheus::Counter& journal_failures_ =
        counter("journal_write_failures_total",
                "Writes of history that failed, most to be tried again")
            .Add({});
    prometheus::Counter& journal_lost_ =
        counter("journal_records_lost_total", "Records of history that were given up").Add({});
    prometheus::Gauge& journal_pending_ =
        gauge("journal_pending_bytes", "History that is not on disk yet").Add({});
    prometheus::Gauge& disk_promised_ =
        gauge("workspace_disk_promised_bytes", "Sum of the disk limits of all sandboxes").Add({});
    prometheus::Gauge& disk_most_ =
        gauge("workspace_disk_limit_bytes",
              "The limit of that sum; 0 if workspaces are not on a disk")
            .Add({});
    Family<prometheus::Gauge>& disk_free_ = gauge("disk_free_bytes", "Free bytes of a disk");
    Family<prometheus::Gauge>& disk_reserved_ =
        gauge("disk_reserved_bytes", "Bytes of a disk that are kept for the server's state");
    Family<prometheus::Gauge>& images_ = gauge("images", "Images of the store");
    Family<prometheus::Gauge>& image_bytes_ =
        gauge("image_bytes", "Bytes of the store's images as layouts, not unpacked");
    Family<prometheus::Gauge>& launcher_up_ =
        gauge("launcher_up", "1 while the launcher runs, else 0");
    Family<prometheus::Gauge>& leader_ =
        gauge("leader", "1 while this replica leads, else 0; a server without replicas leads");
    Family<prometheus::Gauge>& launcher_operations_ =
        gauge("launcher_operations_in_flight", "Operations that wait for the launcher's answer");
    Family<prometheus::Gauge>& uid_leases_ =
        gauge("uid_leases", "Ranges of uids that sandboxes of this instance hold");
    Family<prometheus::Gauge>& launcher_stuck_ =
        gauge("launcher_operations_stuck", "Operations that the launcher did not answer in time");
    Family<prometheus::Gauge>& build_info_ = gauge("build_info", "Always 1; the labels tell");
    GpuMetrics gpus_{registry_};
    TraceMetrics traces_{registry_};
    UsageMetrics usage_{registry_};
    Exemplars exemplars_;
};

}  // namespace hearth::metrics
