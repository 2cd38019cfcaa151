#include "api/rest/model/Answers.h"
#include "api/rest/model/PoolSpecShape.h"
#include "base/Units.h"

namespace hearth::rest {
namespace {

Json versionsJson(const std::vector<controller::LockedPackage>& packages) {
    Json versions = Json::object();
    for (const auto& [name, version] : packages) versions[name] = version;
    return versions;
}

}  // namespace

static void listFields(Shape<controller::Pool>& shape) {
    using View = controller::Pool;
    shape.schema().open();
    shape.field("name", &View::name)
        .field("generation", &View::generation)
        .field("resourceVersion", &View::resource_version,
               {[](std::int64_t version) { return std::to_string(version); },
                "Also the ETag; for If-Match"})
        .field("createdAt", &View::created_unix_ms, {formatUnixMillis, Schema::string(kDateTime)})
        .field("deleting", &View::deleting)
        .optional("onDemand", &View::on_demand,
                  "The image that claims named; only of pools that the server made for them");
}

static void listFields(Shape<controller::PoolForecast>& shape) {
    using View = controller::PoolForecast;
    shape.schema().named("PoolForecast");
    shape.field("claimsPerSecond", &View::claims_per_second, "Expected")
        .field("startSeconds", &View::start_seconds, "The mean time of a start")
        .field("target", &View::target, "Warm sandboxes that spec.sizing.missRate needs");
}

static void listFields(Shape<controller::PoolCondition>& shape) {
    using View = controller::PoolCondition;
    shape.schema().named("Condition");
    shape.field("type", &View::type, controller::kConditionTypes)
        .field("status", &View::status,
               {[](bool status) { return status ? "True" : "False"; },
                Schema::oneOf({"True", "False"})})
        .field("reason", &View::reason)
        .field("message", &View::message)
        .orNull("lastTransitionTime", &View::since, Schema::string(kDateTime));
}

static void listFields(Shape<controller::PoolScheduleStatus>& shape) {
    using View = controller::PoolScheduleStatus;
    shape.schema()
        .named("PoolScheduleStatus")
        .describe("The schedule state of a pool that has schedules");
    shape.orNull("entry", &View::entry, "In force now; null: the pool's own numbers")
        .field("min", &View::min)
        .field("max", &View::max)
        .orNull("since", &View::since)
        .orNull("nextChange", &View::next_change, "null: none is near")
        .orNull("nextEntry", &View::next_entry, "null: the pool's own numbers");
}

static void listFields(Shape<controller::PoolPackages>& shape) {
    using View = controller::PoolPackages;
    shape.schema().named("PoolPackages");
    shape.field("digest", &View::digest, "The digest of the layer that all its sandboxes share")
        .field("lock", &View::lock,
               "The file in state/layers of the data directory; once removed, the packages are "
               "resolved again")
        .field("installed", &View::installed,
               {versionsJson, Schema::object().open().describe("Version by name")});
}

static void listFields(Shape<controller::PoolStatus>& shape) {
    using View = controller::PoolStatus;
    shape.field("observedGeneration", &View::observed_generation)
        .field("ready", &View::ready)
        .field("claimed", &View::claimed)
        .field("creating", &View::creating)
        .field("draining", &View::draining)
        .field("failed", &View::failed)
        .field("desired", &View::desired)
        .field("waiting", &View::waiting)
        .optional(
            "missRate", [](const View& status) { return status.forecast.miss_rate; },
            "Of recent claims, the share that found no ready sandbox")
        .optional("forecast", &View::forecast)
        .field("conditions", &View::conditions)
        .optional("schedule", &View::schedule)
        .optional("packages", &View::packages);
}

void listFields(Shape<controller::PoolView>& shape) {
    using View = controller::PoolView;
    shape.schema().named("Pool").example(
        parseJson(R"({"apiVersion":"hearth.dev/v1alpha1","kind":"SandboxPool",
        "metadata":{"name":"python","generation":1,"resourceVersion":"7",
                    "createdAt":"2026-11-21T03:00:00.000Z","deleting":false},
        "spec":{"template":{"image":"python","allowTags":false,
                    "resources":{"cpu":"1","memory":"512Mi","pids":128,"workspace":"1Gi",
                                 "tmp":"64Mi"},
                    "storage":"Disk","network":{"mode":"None","allow":[],"credentials":[]},
                    "prewarm":{"languages":["python"],"imports":["numpy"],"packages":[],
                               "command":[],"timeout":"1m"}},
                "warm":{"min":2,"max":20,"parallelCreates":2,"maxAge":"24h"},
                "sizing":{"mode":"Static","missRate":0.001},
                "onEmpty":{"action":"Queue","maxWait":"20s","maxQueue":64},
                "lifecycle":{"idleTimeout":"10m","maxLifetime":"2h","silenceTimeout":"5m",
                             "onIdle":"Reclaim","countRunningWork":true,"warnBefore":"30s"},
                "limits":{"members":60,"perTenant":50}},
        "status":{"observedGeneration":1,"ready":2,"claimed":1,"creating":0,"draining":0,
                  "failed":0,"desired":2,"waiting":0,"missRate":0.0,
                  "forecast":{"claimsPerSecond":0.2,"startSeconds":0.5,"target":2},
                  "conditions":[{"type":"Ready","status":"True","reason":"Filled",
                                 "message":"2 of 2 warm",
                                 "lastTransitionTime":"2026-11-21T03:00:02.000Z"}]}})"));
    shape.field("apiVersion", [](const View&) { return controller::kPoolApiVersion; })
        .field("kind", [](const View&) { return controller::kPoolKind; })
        .field("metadata", [](const View& view) -> const controller::Pool& { return *view.pool; })
        .field(
            "spec",
            [](const View& view) {
                return controller::poolDocument(view.pool->name, view.pool->spec).at("spec");
            },
            poolSpecSchema())
        .field("status", &View::status);
}

}  // namespace hearth::rest
