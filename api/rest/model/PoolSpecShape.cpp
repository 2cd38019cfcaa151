#include "api/rest/model/PoolSpecShape.h"

#include "controller/contract/Workspaces.h"

namespace hearth::rest {
namespace {

constexpr std::size_t kLongestValue = 4096;

Schema bounded(std::string description) {
    return Schema::string().sizes(0, kLongestValue).describe(std::move(description));
}

Schema listed(std::string description) {
    return Schema::array(Schema::string().sizes(0, kLongestValue)).describe(std::move(description));
}

Schema resourcesSchema() {
    return Schema::object()
        .optional("cpu", bounded("Cores: \"1\", \"0.5\" or \"500m\""))
        .optional("memory", bounded("\"512Mi\""))
        .optional("pids", Schema::integer().describe("Processes and threads"))
        .optional("workspace", bounded("The disk of the workspace"))
        .optional("tmp", bounded("/tmp, which counts as memory"))
        .named("PoolResources");
}

Schema networkSchema() {
    return Schema::object()
        .optional("mode", Schema::oneOf(egress::kNetworkModes.all()))
        .optional("allow", listed("With mode Egress: what may be reached"))
        .optional("credentials", Schema::array(Schema::object().open())
                                     .describe("Secrets that are added to requests, by name"))
        .named("PoolNetwork");
}

Schema prewarmSchema() {
    return Schema::object()
        .optional("languages", listed("Languages whose interpreters are started ahead"))
        .optional("imports", listed("Python modules that are imported ahead"))
        .optional("packages", listed("Packages in a layer that all its sandboxes share"))
        .optional("command", listed("A program and its arguments, run before a sandbox is ready"))
        .optional("timeout", bounded("\"1m\""))
        .named("PoolPrewarm");
}

Schema gpuSpecSchema() {
    return Schema::object()
        .optional("count", Schema::integer().describe("Devices of each sandbox; 0: none"))
        .optional("product", listed("Any of these, the first preferred: words of a product's name, "
                                    "or a MIG profile; empty: any"))
        .optional("sharing", Schema::oneOf(controller::kGpuSharings.all())
                                 .describe("Shared: several sandboxes have one device, without "
                                           "isolation between them"))
        .optional("sharedBy", Schema::integer().describe("With Shared: sandboxes of one device"))
        .named("PoolGpu");
}

Schema templateSchema() {
    return Schema::object()
        .optional("image", bounded("A name in the image store, or a digest"))
        .optional("allowTags", Schema::boolean())
        .optional("resources", resourcesSchema())
        .optional("storage", Schema::oneOf({"Disk", "Memory"}))
        .optional("gpu", gpuSpecSchema())
        .optional("runtimeClass", bounded("The RuntimeClass of its Pods, in a cluster"))
        .optional("podTemplate", Schema::object().open().describe(
                                     "Parts of a PodTemplate that its Pods get in addition"))
        .optional("network", networkSchema())
        .optional("prewarm", prewarmSchema())
        .named("PoolTemplate");
}

Schema scheduleSchema() {
    return Schema::object()
        .required("name", bounded("Unique in the pool"))
        .required("cron", bounded("\"0 20 * * mon-fri\", or a name such as \"@daily\""))
        .optional("timeZone", bounded("A name of the IANA database; without it UTC"))
        .optional("duration", bounded("The length of a window; without it, the entry lasts until "
                                      "the next one without a window"))
        .optional("warm",
                  Schema::object()
                      .optional("min", Schema::integer())
                      .optional("max", Schema::integer())
                      .describe("Replaces the pool's own numbers while the entry is in force")
                      .named("PoolScheduleWarm"))
        .optional("sweep",
                  Schema::boolean().describe("Each firing replaces the older warm sandboxes"))
        .named("PoolSchedule");
}

Schema lifecycleSchema() {
    return Schema::object()
        .optional("idleTimeout", bounded("\"10m\""))
        .optional("maxLifetime", bounded("\"2h\""))
        .optional("silenceTimeout", bounded("How long an agent may be silent"))
        .optional("onIdle", Schema::oneOf(controller::kOnIdle.all())
                                .describe("Pause: an idle workspace is frozen until the next call"))
        .optional("countRunningWork",
                  Schema::boolean().describe("False: running executions do not keep a workspace"))
        .optional("warnBefore", bounded("How long before its end a workspace's owner is warned"))
        .named("PoolLifecycle");
}

}  // namespace

Schema poolSpecSchema() {
    return Schema::object()
        .optional("template", templateSchema())
        .optional("warm", Schema::object()
                              .optional("min", Schema::integer())
                              .optional("max", Schema::integer())
                              .optional("parallelCreates", Schema::integer())
                              .optional("maxAge", bounded("\"24h\""))
                              .named("PoolWarm"))
        .optional("sizing", Schema::object()
                                .optional("mode", Schema::oneOf(controller::kSizingModes.all()))
                                .optional("missRate", Schema::number().describe(
                                                          "With mode Predictive: the share of "
                                                          "claims that may find none ready"))
                                .named("PoolSizing"))
        .optional("schedules", Schema::array(scheduleSchema()))
        .optional("onEmpty", Schema::object()
                                 .optional("action", Schema::oneOf({"Queue", "Create", "Fail"}))
                                 .optional("maxWait", bounded("\"20s\""))
                                 .optional("maxQueue", Schema::integer())
                                 .named("PoolOnEmpty"))
        .optional("lifecycle", lifecycleSchema())
        .optional("limits", Schema::object()
                                .optional("members", Schema::integer())
                                .optional("perTenant", Schema::integer())
                                .named("PoolLimits"))
        .describe("The specification of a pool. Answers have every field, with its default")
        .named("PoolSpec");
}

}  // namespace hearth::rest
