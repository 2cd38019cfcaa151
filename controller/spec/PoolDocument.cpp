#include "base/Units.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::controller {
namespace {

Json scheduleJson(const Schedule& one) {
    Json json{{"name", one.name}, {"cron", one.cron.text()}, {"timeZone", one.zone.name()}};
    if (one.duration.count() > 0) json["duration"] = formatDuration(one.duration);
    if (one.warm) {
        Json& warm = json["warm"] = Json::object();
        if (one.warm->min) warm["min"] = *one.warm->min;
        if (one.warm->max) warm["max"] = *one.warm->max;
    }
    json["sweep"] = one.sweep;
    return json;
}

}  // namespace

Json poolDocument(const std::string& name, const PoolSpec& spec) {
    Json credentials = Json::array();
    for (const egress::Credential& credential : spec.network_credentials) {
        credentials.push_back(egress::credentialJson(credential));
    }
    Json schedules = Json::array();
    for (const Schedule& one : spec.schedules) schedules.push_back(scheduleJson(one));
    return {{"apiVersion", kPoolApiVersion},
            {"kind", kPoolKind},
            {"metadata", {{"name", name}}},
            {"spec",
             {{"template",
               {{"image", spec.image},
                {"allowTags", spec.allow_tags},
                {"resources",
                 {{"cpu", formatMilliCpu(spec.limits.milli_cpu)},
                  {"memory", formatBytes(spec.limits.memory_bytes)},
                  {"pids", spec.limits.pids},
                  {"workspace", formatBytes(spec.limits.workspace_bytes)},
                  {"tmp", formatBytes(spec.limits.tmp_bytes)}}},
                {"storage", kStorages.of(spec.storage)},
                {"gpu",
                 {{"count", spec.gpu.count},
                  {"product", spec.gpu.products},
                  {"sharing", kGpuSharings.of(spec.gpu.sharing)},
                  {"sharedBy", spec.gpu.shared_by}}},
                {"runtimeClass", spec.runtime_class},
                {"podTemplate", spec.pod_template},
                {"network",
                 {{"mode", egress::kNetworkModes.of(spec.network)},
                  {"allow", spec.network_allow},
                  {"credentials", std::move(credentials)}}},
                {"prewarm",
                 {{"languages", spec.prewarm_languages},
                  {"imports", spec.prewarm_imports},
                  {"packages", spec.prewarm_packages},
                  {"command", spec.prewarm_command},
                  {"timeout", formatDuration(spec.prewarm_timeout)}}}}},
              {"warm",
               {{"min", spec.warm_min},
                {"max", spec.warm_max},
                {"parallelCreates", spec.parallel_creates},
                {"maxAge", formatDuration(spec.max_age)}}},
              {"sizing", {{"mode", kSizingModes.of(spec.sizing)}, {"missRate", spec.miss_rate}}},
              {"schedules", std::move(schedules)},
              {"onEmpty",
               {{"action", kOnEmpty.of(spec.on_empty)},
                {"maxWait", formatDuration(spec.max_wait)},
                {"maxQueue", spec.max_queue}}},
              {"lifecycle",
               {{"idleTimeout", formatDuration(spec.idle_timeout)},
                {"maxLifetime", formatDuration(spec.max_lifetime)},
                {"silenceTimeout", formatDuration(spec.silence_timeout)},
                {"onIdle", kOnIdle.of(spec.on_idle)},
                {"countRunningWork", spec.count_running_work},
                {"warnBefore", formatDuration(spec.warn_before)}}},
              {"limits", {{"members", spec.max_members}, {"perTenant", spec.per_tenant}}}}}};
}

Json storedDocument(const Pool& pool) {
    Json document = poolDocument(pool.name, pool.spec);
    if (!pool.on_demand.empty()) document["metadata"]["onDemand"] = pool.on_demand;
    if (!pool.object.empty()) document["metadata"]["object"] = pool.object;
    return document;
}

}  // namespace hearth::controller
