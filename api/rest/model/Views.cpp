#include "api/rest/model/Views.h"

#include "base/Clock.h"
#include "base/Units.h"
#include "controller/contract/ResultForms.h"

namespace hearth::rest {
namespace {

/// Text from inside a sandbox may hold any bytes; a JSON document may not.
Json clean(const Json& untrusted) {
    if (untrusted.is_string()) return toUtf8(untrusted.get_ref<const std::string&>());
    if (untrusted.is_array()) {
        Json out = Json::array();
        for (const Json& item : untrusted) out.push_back(clean(item));
        return out;
    }
    if (!untrusted.is_object()) return untrusted;
    Json out = Json::object();
    for (const auto& [key, value] : untrusted.items()) out[toUtf8(key)] = clean(value);
    return out;
}

Json conditionJson(const controller::PoolCondition& condition) {
    return {{"type", controller::kConditionTypes.of(condition.type)},
            {"status", condition.status ? "True" : "False"},
            {"reason", condition.reason},
            {"message", condition.message},
            {"lastTransitionTime", orNull(condition.since)}};
}

}  // namespace

Json limitsJson(const pool::SandboxLimits& limits) {
    return {{"cpu", limits.milli_cpu / 1000.0},
            {"memoryBytes", limits.memory_bytes},
            {"pids", limits.pids},
            {"workspaceBytes", limits.workspace_bytes},
            {"tmpBytes", limits.tmp_bytes}};
}

Json workspaceJson(const controller::WorkspaceView& view, const std::string& trace_id) {
    Json labels = Json::object();
    for (const auto& [key, value] : view.labels) labels[key] = value;
    Json out = {{"id", view.id},
                {"pool", view.pool},
                {"sandboxId", view.sandbox_id},
                {"phase", controller::kWorkspacePhases.of(view.phase)},
                {"tenant", view.tenant},
                {"name", orNull(view.name)},
                {"labels", std::move(labels)},
                {"root", view.root},
                {"createdAt", view.created_at},
                {"lastActiveAt", view.last_active_at},
                {"idleExpiresAt", orNull(view.idle_expires_at)},
                {"expiresAt", orNull(view.expires_at)},
                {"gpus", view.gpus},
                {"network", egress::kNetworkModes.of(view.network)},
                {"limits", limitsJson(view.limits)}};
    if (!view.credentials.empty()) out["credentials"] = view.credentials;
    if (view.claim) out["claim"] = ledgerJson(*view.claim);
    if (!trace_id.empty()) out["traceId"] = trace_id;
    return out;
}

Json resultJson(const controller::Result& result) {
    return controller::documentOf(result);
}

Json contextJson(const controller::ContextView& view) {
    return {{"id", view.id},
            {"workspaceId", view.workspace_id},
            {"language", view.language},
            {"name", orNull(view.name)},
            {"cwd", orNull(view.cwd)},
            {"createdAt", view.created_at},
            {"executionId", orNull(view.running)}};
}

Json executionJson(const controller::ExecutionView& view, const std::string& trace_id,
                   const std::string& origin) {
    Json artifacts = Json::array();
    for (const controller::Artifact& artifact : view.artifacts) {
        const bool kept = !artifact.url.empty();
        artifacts.push_back(
            {{"path", toUtf8(artifact.path)},
             {"size", artifact.size},
             {"mime", artifact.mime},
             {"sha256", orNull(artifact.sha256)},
             {"url", kept ? Json(origin + artifact.url) : Json(nullptr)},
             {"urlExpiresAt", kept ? Json(formatUnixMillis(artifact.expires_ms)) : Json(nullptr)}});
        if (artifact.not_kept) {
            artifacts.back()["reason"] = controller::kNotKept.of(*artifact.not_kept);
        }
    }
    Json results = Json::array();
    for (const controller::ResultPtr& result : view.results) results.push_back(resultJson(*result));
    Json out = {{"id", view.id},
                {"workspaceId", view.workspace_id},
                {"language", orNull(view.language)},
                {"status", controller::kExecutionStatuses.of(view.status)},
                {"exitCode", view.exit_code ? Json(*view.exit_code) : Json(nullptr)},
                {"signal", orNull(view.signal)},
                {"stdout", toUtf8(view.stdout_bytes)},
                {"stderr", toUtf8(view.stderr_bytes)},
                {"truncated", view.truncated},
                {"droppedBytes", view.dropped_bytes},
                {"results", std::move(results)},
                {"droppedResults", view.dropped_results},
                {"error", view.error ? clean(*view.error) : Json(nullptr)},
                {"artifacts", std::move(artifacts)},
                {"artifactsTruncated", view.artifacts_truncated},
                {"background", view.background},
                {"startedAt", view.started_at},
                {"durationMs", view.duration_ms ? Json(*view.duration_ms) : Json(nullptr)},
                {"usage", {{"cpuMs", view.cpu_ms}, {"peakMemoryBytes", view.peak_memory_bytes}}},
                {"interpreter", orNull(view.interpreter)},
                {"context", orNull(view.context)},
                {"contextKept", view.context_kept ? Json(*view.context_kept) : Json(nullptr)}};
    if (view.packages) {
        out["installed"] = view.packages->installed;
        out["installMs"] = view.packages->duration_ms;
        if (!view.packages->not_installed.empty()) {
            out["notInstalled"] = view.packages->not_installed;
        }
    }
    if (view.claim) out["claim"] = ledgerJson(*view.claim);
    if (!trace_id.empty()) out["traceId"] = trace_id;
    return out;
}

Json poolJson(const controller::PoolView& view) {
    const controller::Pool& pool = *view.pool;
    Json out = controller::poolDocument(pool.name, pool.spec);
    Json& metadata = out["metadata"];
    metadata["generation"] = pool.generation;
    metadata["resourceVersion"] = std::to_string(pool.resource_version);
    metadata["createdAt"] = formatUnixMillis(pool.created_unix_ms);
    metadata["deleting"] = pool.deleting;
    if (!pool.on_demand.empty()) metadata["onDemand"] = pool.on_demand;

    const controller::PoolStatus& status = view.status;
    Json conditions = Json::array();
    for (const controller::PoolCondition& condition : status.conditions) {
        conditions.push_back(conditionJson(condition));
    }
    out["status"] = {{"observedGeneration", status.observed_generation},
                     {"ready", status.ready},
                     {"claimed", status.claimed},
                     {"creating", status.creating},
                     {"draining", status.draining},
                     {"failed", status.failed},
                     {"desired", status.desired},
                     {"waiting", status.waiting},
                     {"missRate", status.forecast.miss_rate},
                     {"forecast",
                      {{"claimsPerSecond", status.forecast.claims_per_second},
                       {"startSeconds", status.forecast.start_seconds},
                       {"target", status.forecast.target}}},
                     {"conditions", std::move(conditions)}};
    if (status.schedule) {
        const controller::PoolScheduleStatus& schedule = *status.schedule;
        out["status"]["schedule"] = {{"entry", orNull(schedule.entry)},
                                     {"min", schedule.min},
                                     {"max", schedule.max},
                                     {"since", orNull(schedule.since)},
                                     {"nextChange", orNull(schedule.next_change)},
                                     {"nextEntry", orNull(schedule.next_entry)}};
    }
    if (status.packages) {
        Json installed = Json::object();
        for (const controller::LockedPackage& package : status.packages->installed) {
            installed[package.name] = package.version;
        }
        out["status"]["packages"] = {{"digest", status.packages->digest},
                                     {"lock", status.packages->lock},
                                     {"installed", std::move(installed)}};
    }
    return out;
}

Json sandboxJson(const controller::SandboxView& view) {
    return {{"id", view.id},
            {"pool", view.pool},
            {"phase", view.phase},
            {"generation", view.generation},
            {"workspaceId", orNull(view.workspace_id)},
            {"tenant", orNull(view.tenant)},
            {"createdAt", view.created_at},
            {"readyAt", orNull(view.ready_at)},
            {"image", view.image},
            {"runtime", view.runtime}};
}

Json eventJson(const controller::Event& event) {
    return {{"id", event.id},
            {"time", event.time},
            {"type", event.type},
            {"resource", event.resource},
            {"pool", orNull(event.pool)},
            {"tenant", orNull(event.tenant)},
            {"reason", orNull(event.reason)},
            {"message", toUtf8(event.message)},
            {"traceId", orNull(event.trace_id)}};
}

Json tokenJson(const controller::TokenView& view) {
    return {{"id", view.id},
            {"name", view.name},
            {"tenant", view.tenant},
            {"role", controller::kRoles.of(view.role)},
            {"createdAt", orNull(view.created_at)},
            {"expiresAt", orNull(view.expires_at)},
            {"source", controller::kTokenSources.of(view.source)}};
}

Json usageJson(const controller::WorkspaceUsage& usage) {
    return {{"cpuMs", usage.cpu_ms},
            {"memoryBytes", usage.memory_bytes},
            {"memoryPeakBytes", usage.memory_peak_bytes},
            {"processes", usage.processes},
            {"diskBytes", usage.disk_bytes},
            {"diskLimitBytes", usage.disk_limit_bytes},
            {"gpus", usage.gpus}};
}

Json packagesJson(const controller::PackagesView& view) {
    Json packages = Json::object();
    for (const auto& [name, package] : view.packages) {
        packages[name] = {{"state", controller::kPackageStages.of(package.state)},
                          {"version", orNull(package.version)},
                          {"error", orNull(package.error)}};
    }
    return {{"status", controller::kPackagesStatuses.of(view.status)},
            {"packages", std::move(packages)},
            {"error", orNull(view.error)},
            {"executionId", view.execution_id}};
}

Json egressJson(const egress::EgressReport& report) {
    Json latest = Json::array();
    for (const egress::EgressEntry& entry : report.latest) {
        latest.push_back({{"at", formatRfc3339(entry.at)},
                          {"kind", egress::kEgressKinds.of(entry.kind)},
                          {"destination", entry.destination},
                          {"decision", entry.decision},
                          {"status", entry.status},
                          {"sentBytes", entry.sent},
                          {"receivedBytes", entry.received},
                          {"durationMs", entry.duration_ms}});
    }
    return {{"requests", report.requests},
            {"refused", report.refused},
            {"sentBytes", report.sent},
            {"receivedBytes", report.received},
            {"latest", std::move(latest)}};
}

Json fileJson(const agent::FileStat& stat) {
    Json out = {{"path", toUtf8(stat.path)},
                {"type", agent::kFileTypes.of(stat.type)},
                {"size", stat.size},
                {"mode", formatFileMode(stat.mode)},
                {"modifiedAt", formatUnixMillis(stat.modified_unix_ms)}};
    if (!stat.target.empty()) out["target"] = toUtf8(stat.target);
    return out;
}

Json orNull(const std::optional<std::string>& text) {
    return text ? Json(*text) : Json(nullptr);
}
Json orNull(const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
}

Json listJson(Json items, const std::string& next_cursor) {
    return {{"items", std::move(items)}, {"nextCursor", orNull(next_cursor)}};
}

}  // namespace hearth::rest
