#include "metrics/Metrics.h"

#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/Version.h"
#include "metrics/OpenMetrics.h"
#include "metrics/ProcessStats.h"

namespace hearth::metrics {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;

}  // namespace

const prometheus::Histogram::BucketBoundaries Metrics::kWorkBuckets{
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300};

#define HEARTH_FAMILY(build, name, help) build().Name("hearth_" name).Help(help).Register(registry_)

Metrics::Metrics()
    : pool_sandboxes_(HEARTH_FAMILY(BuildGauge, "pool_sandboxes", "Sandboxes by state")),
      pool_desired_(
          HEARTH_FAMILY(BuildGauge, "pool_desired_sandboxes", "Warm sandboxes asked for")),
      pool_forecast_(HEARTH_FAMILY(BuildGauge, "pool_forecast_claims_per_second",
                                   "Claims that the pool's forecast expects")),
      pool_forecast_target_(HEARTH_FAMILY(BuildGauge, "pool_forecast_sandboxes",
                                          "Warm sandboxes that the forecast needs")),
      pool_miss_ratio_(HEARTH_FAMILY(BuildGauge, "pool_miss_ratio",
                                     "Share of recent claims that found no ready sandbox")),
      pool_idle_(HEARTH_FAMILY(BuildCounter, "pool_idle_sandbox_seconds_total",
                               "Time that ready sandboxes waited for claims")),
      pool_degraded_(HEARTH_FAMILY(BuildGauge, "pool_degraded",
                                   "1 while the pool cannot make sandboxes, else 0")),
      claims_(HEARTH_FAMILY(BuildCounter, "claims_total",
                            "Claims by result: ok by source, refused and failed by reason, or "
                            "cancelled")),
      claim_duration_(HEARTH_FAMILY(BuildHistogram, "claim_duration_seconds",
                                    "Time from the request to the bound workspace")),
      claim_stage_(HEARTH_FAMILY(BuildHistogram, "claim_stage_seconds", "Time of each stage")),
      claim_queue_depth_(HEARTH_FAMILY(BuildGauge, "claim_queue_depth", "Claims that wait")),
      quota_use_(HEARTH_FAMILY(BuildGauge, "tenant_quota_use",
                               "Resources that a tenant with a quota of its own holds")),
      quota_limit_(HEARTH_FAMILY(BuildGauge, "tenant_quota_limit",
                                 "The limit of its quota; absent without a limit")),
      claim_queue_(HEARTH_FAMILY(BuildHistogram, "claim_queue_seconds",
                                 "Time in line of claims that got a sandbox")),
      pool_exhausted_(
          HEARTH_FAMILY(BuildCounter, "pool_exhausted_total", "Claims that found no warm sandbox")),
      sandbox_start_(HEARTH_FAMILY(BuildHistogram, "sandbox_start_seconds",
                                   "Time from create to a ready agent")),
      suspect_sandboxes_(HEARTH_FAMILY(
          BuildGauge, "suspect_sandboxes",
          "Sandboxes with a workspace that run but do not answer; they are asked again")),
      sweep_leftovers_(
          HEARTH_FAMILY(BuildGauge, "sweep_leftovers",
                        "Ended sandboxes that cannot be removed completely; it is tried again")),
      sandbox_failures_(HEARTH_FAMILY(BuildCounter, "sandbox_failures_total",
                                      "Sandboxes that failed, by reason")),
      reclaims_(HEARTH_FAMILY(BuildCounter, "reclaims_total", "Ended sandboxes by reason")),
      reclaim_lag_(HEARTH_FAMILY(BuildHistogram, "reclaim_lag_seconds",
                                 "Time from the deadline of a workspace to its end")),
      workspaces_(HEARTH_FAMILY(BuildGauge, "workspaces", "Active and paused workspaces")),
      paused_workspaces_(HEARTH_FAMILY(BuildGauge, "paused_workspaces", "Paused workspaces")),
      pauses_(HEARTH_FAMILY(BuildCounter, "pauses_total", "Idle workspaces that were paused")),
      resumes_(HEARTH_FAMILY(BuildHistogram, "resume_seconds",
                             "From a call to a paused workspace until its processes run")),
      executions_(HEARTH_FAMILY(BuildCounter, "executions_total", "Executions by status")),
      execution_duration_(
          HEARTH_FAMILY(BuildHistogram, "execution_duration_seconds", "Time the work ran")),
      execution_overhead_(HEARTH_FAMILY(BuildHistogram, "execution_overhead_seconds",
                                        "Time the server added to the work")),
      contexts_(HEARTH_FAMILY(BuildGauge, "contexts", "Stateful interpreters")),
      context_ends_(HEARTH_FAMILY(BuildCounter, "context_ends_total", "Ended contexts by reason")),
      reconciles_(HEARTH_FAMILY(BuildCounter, "reconcile_total", "Reconciliations by result")),
      reconcile_duration_(
          HEARTH_FAMILY(BuildHistogram, "reconcile_duration_seconds", "Time of a reconciliation")),
      workqueue_depth_(
          HEARTH_FAMILY(BuildGauge, "workqueue_depth", "Keys that wait for a worker, by lane")),
      workqueue_retries_(
          HEARTH_FAMILY(BuildCounter, "workqueue_retries_total", "Keys put back after a failure")),
      http_(HEARTH_FAMILY(BuildHistogram, "http_request_duration_seconds",
                          "Time of HTTP requests by route")),
      http_refused_(HEARTH_FAMILY(BuildCounter, "http_connections_refused_total",
                                  "Connections and requests refused before routing")),
      tls_handshakes_(HEARTH_FAMILY(BuildCounter, "tls_handshakes_total",
                                    "TLS connections by the result of their handshake")),
      tls_expiry_(HEARTH_FAMILY(BuildGauge, "tls_certificate_expiry_timestamp_seconds",
                                "When the server's certificate expires; 0 without TLS")),
      http_workers_(
          HEARTH_FAMILY(BuildGauge, "http_workers", "Threads that answer requests, by listener")),
      http_workers_busy_(HEARTH_FAMILY(BuildGauge, "http_workers_busy",
                                       "Threads that answer a request now, by listener")),
      tokens_stale_(
          HEARTH_FAMILY(
              BuildGauge, "tokens_file_stale",
              "1 while the file of --config cannot be used: its previous tokens stay in force")
              .Add({})),
      audit_(HEARTH_FAMILY(BuildCounter, "audit_entries_total",
                           "Entries of the audit log: written, failed and tried again, or lost")),
      database_damage_(HEARTH_FAMILY(BuildCounter, "database_damage_total",
                                     "Damage of the database, by where it was found")),
      mcp_(HEARTH_FAMILY(BuildCounter, "mcp_requests_total", "MCP requests")),
      double_bind_(HEARTH_FAMILY(BuildCounter, "double_bind_refused_total",
                                 "Binds that an agent refused because another claim holds it")),
      egress_(HEARTH_FAMILY(BuildCounter, "egress_requests_total",
                            "Requests of sandboxes to the outside, by decision")),
      egress_bytes_(HEARTH_FAMILY(BuildCounter, "egress_bytes_total",
                                  "Bytes that sandboxes sent to the outside and received")),
      mirror_cache_(HEARTH_FAMILY(BuildGauge, "mirror_cache_bytes",
                                  "Files of package indexes that are kept")),
      log_dropped_(
          HEARTH_FAMILY(BuildCounter, "log_lines_dropped_total",
                        "Lines of the log and the access log that were not written in time")
              .Add({})),
      journal_failures_(HEARTH_FAMILY(BuildCounter, "journal_write_failures_total",
                                      "Writes of history that failed, most to be tried again")
                            .Add({})),
      journal_lost_(HEARTH_FAMILY(BuildCounter, "journal_records_lost_total",
                                  "Records of history that were given up")
                        .Add({})),
      journal_pending_(
          HEARTH_FAMILY(BuildGauge, "journal_pending_bytes", "History that is not on disk yet")
              .Add({})),
      disk_promised_(HEARTH_FAMILY(BuildGauge, "workspace_disk_promised_bytes",
                                   "Sum of the disk limits of all sandboxes")
                         .Add({})),
      disk_most_(HEARTH_FAMILY(BuildGauge, "workspace_disk_limit_bytes",
                               "The limit of that sum; 0 if workspaces are not on a disk")
                     .Add({})),
      disk_free_(HEARTH_FAMILY(BuildGauge, "disk_free_bytes", "Free bytes of a disk")),
      disk_reserved_(HEARTH_FAMILY(BuildGauge, "disk_reserved_bytes",
                                   "Bytes of a disk that are kept for the server's state")),
      images_(HEARTH_FAMILY(BuildGauge, "images", "Images of the store")),
      image_bytes_(HEARTH_FAMILY(BuildGauge, "image_bytes",
                                 "Bytes of the store's images as layouts, not unpacked")),
      launcher_up_(HEARTH_FAMILY(BuildGauge, "launcher_up", "1 while the launcher runs, else 0")),
      leader_(HEARTH_FAMILY(BuildGauge, "leader",
                            "1 while this replica leads, else 0; a server without replicas leads")),
      launcher_operations_(HEARTH_FAMILY(BuildGauge, "launcher_operations_in_flight",
                                         "Operations that wait for the launcher's answer")),
      uid_leases_(HEARTH_FAMILY(BuildGauge, "uid_leases",
                                "Ranges of uids that sandboxes of this instance hold")),
      launcher_stuck_(HEARTH_FAMILY(BuildGauge, "launcher_operations_stuck",
                                    "Operations that the launcher did not answer in time")),
      build_info_(HEARTH_FAMILY(BuildGauge, "build_info", "Always 1; the labels tell")) {
    workqueue_retries_.Add({});
    double_bind_.Add({});
    mirror_cache_.Add({});
    sweep_leftovers_.Add({});
    build_info_.Add({{"version", kHearthVersion}}).Set(1);
    leader(true);
    for (const char* reason :
         {"bad_request", "body_timeout", "connections", "connections_per_address", "descriptors",
          "first_byte_timeout", "head_timeout", "host", "origin", "queue_full", "shed_idle",
          "streams", "streams_displaced", "waits"}) {
        http_refused_.Add({{"reason", reason}});
    }
    tls_expiry_.Add({});
    for (const char* result : {"ok", "failed"}) tls_handshakes_.Add({{"result", result}});
    bornUnserved("");
    for (const char* result : {"written", "failed", "lost"}) audit_.Add({{"result", result}});
    for (const char* found : {"start", "running", "missing"}) {
        database_damage_.Add({{"found", found}});
    }
}

#undef HEARTH_FAMILY

void Metrics::bornReconcile(std::string_view kind) {
    for (const char* result : {"ok", "error"}) {
        reconciles_.Add({{"kind", std::string(kind)}, {"result", result}});
    }
    reconcile_duration_.Add({{"kind", std::string(kind)}}, kWorkBuckets);
}

void Metrics::quotas(const std::vector<QuotaGauge>& all) {
    const MutexLock lock(quota_mutex_);
    std::set<prometheus::Gauge*> now;
    const auto set = [&](Family<prometheus::Gauge>& family, const QuotaGauge& each, double value) {
        prometheus::Gauge& gauge =
            family.Add({{"tenant", each.tenant}, {"resource", each.resource}});
        gauge.Set(value);
        now.insert(&gauge);
    };
    for (const QuotaGauge& each : all) {
        set(quota_use_, each, each.use);
        if (each.limit) set(quota_limit_, each, *each.limit);
    }
    for (prometheus::Gauge* before : quota_gauges_) {
        if (now.contains(before)) continue;
        quota_use_.Remove(before);
        quota_limit_.Remove(before);
    }
    quota_gauges_ = std::move(now);
}

void Metrics::sweepLeftovers(double count) {
    sweep_leftovers_.Add({}).Set(count);
}

void Metrics::reconcile(std::string_view kind, std::string_view result, double seconds) {
    const std::string what(kind);
    reconciles_.Add({{"kind", what}, {"result", std::string(result)}}).Increment();
    reconcile_duration_.Add({{"kind", what}}, kWorkBuckets).Observe(seconds);
}

void Metrics::workQueueDepth(std::string_view lane, double depth) {
    workqueue_depth_.Add({{"lane", std::string(lane)}}).Set(depth);
}

void Metrics::workQueueRetry() {
    workqueue_retries_.Add({}).Increment();
}

void Metrics::http(const std::string& route, std::string_view method, int code, double seconds,
                   const TraceContext& trace) {
    const prometheus::Labels labels{
        {"route", route}, {"method", std::string(method)}, {"code", std::to_string(code)}};
    http_.Add(labels, kWorkBuckets).Observe(seconds);
    exemplars_.note("hearth_http_request_duration_seconds", labels, kWorkBuckets, seconds, trace);
}

void Metrics::httpRefused(std::string_view reason) {
    http_refused_.Add({{"reason", std::string(reason)}}).Increment();
}

void Metrics::tlsHandshake(bool agreed) {
    tls_handshakes_.Add({{"result", agreed ? "ok" : "failed"}}).Increment();
}

void Metrics::tlsExpiry(double at) {
    tls_expiry_.Add({}).Set(at);
}

void Metrics::httpWorkers(std::string_view listener, double count) {
    http_workers_.Add({{"listener", std::string(listener)}}).Set(count);
}

prometheus::Gauge& Metrics::httpWorkersBusy(std::string_view listener) {
    return http_workers_busy_.Add({{"listener", std::string(listener)}});
}

void Metrics::databaseDamage(std::string_view found) {
    database_damage_.Add({{"found", std::string(found)}}).Increment();
}

void Metrics::tokensStale(bool stale) {
    tokens_stale_.Set(stale ? 1 : 0);
}

void Metrics::audit(std::string_view result) {
    audit_.Add({{"result", std::string(result)}}).Increment();
}

void Metrics::mcp(std::string_view method, std::string_view tool, std::string_view result) {
    mcp_.Add({{"method", std::string(method)},
              {"tool", std::string(tool)},
              {"result", std::string(result)}})
        .Increment();
}

void Metrics::mirrorCacheBytes(double bytes) {
    mirror_cache_.Add({}).Set(bytes);
}

void Metrics::logDropped(std::uint64_t lines) {
    log_dropped_.Increment(static_cast<double>(lines));
}

void Metrics::journalFailed() {
    journal_failures_.Increment();
}

void Metrics::journalLost(std::uint64_t records) {
    journal_lost_.Increment(static_cast<double>(records));
}

void Metrics::journalPending(double bytes) {
    journal_pending_.Set(bytes);
}

void Metrics::workspaceDisk(double promised, double most) {
    disk_promised_.Set(promised);
    disk_most_.Set(most);
}

void Metrics::disk(std::string_view disk, double free, double reserved) {
    disk_free_.Add({{"disk", std::string(disk)}}).Set(free);
    disk_reserved_.Add({{"disk", std::string(disk)}}).Set(reserved);
}

void Metrics::images(double count, double bytes) {
    images_.Add({}).Set(count);
    image_bytes_.Add({}).Set(bytes);
}

void Metrics::launcher(bool up, double operations, double leases) {
    launcher_up_.Add({}).Set(up ? 1 : 0);
    launcher_operations_.Add({}).Set(operations);
    uid_leases_.Add({}).Set(leases);
}

void Metrics::leader(bool leads, const std::string& lease) {
    if (!lease.empty()) leader_.Remove(&leader_.Add({{"lease", ""}}));
    leader_.Add({{"lease", lease}}).Set(leads ? 1 : 0);
}

void Metrics::launcherOperationsStuck(std::string_view operation, double count) {
    launcher_stuck_.Add({{"operation", std::string(operation)}}).Set(count);
}

void Metrics::doubleBindRefused() {
    double_bind_.Add({}).Increment();
}

std::vector<prometheus::MetricFamily> Metrics::collect() const {
    std::vector<prometheus::MetricFamily> all = registry_.Collect();
    for (prometheus::MetricFamily& each : processStats()) all.push_back(std::move(each));
    return all;
}

std::string Metrics::render() const {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, collect());
    return out.str();
}

std::string Metrics::renderOpen() const {
    return renderOpenMetrics(collect(), exemplars_);
}

}  // namespace hearth::metrics
