#include "metrics/Metrics.h"

#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/Version.h"
#include "metrics/OpenMetrics.h"
#include "metrics/ProcessStats.h"

namespace hearth::metrics {

const prometheus::Histogram::BucketBoundaries Metrics::kWorkBuckets{
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300};

Metrics::Metrics() {
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

Metrics::Family<prometheus::Gauge>& Metrics::gauge(const std::string& name,
                                                   const std::string& help) {
    return prometheus::BuildGauge().Name("hearth_" + name).Help(help).Register(registry_);
}

Metrics::Family<prometheus::Counter>& Metrics::counter(const std::string& name,
                                                       const std::string& help) {
    return prometheus::BuildCounter().Name("hearth_" + name).Help(help).Register(registry_);
}

Metrics::Family<prometheus::Histogram>& Metrics::histogram(const std::string& name,
                                                           const std::string& help) {
    return prometheus::BuildHistogram().Name("hearth_" + name).Help(help).Register(registry_);
}

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
