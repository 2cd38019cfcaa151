#include "api/rest/model/QuotaShapes.h"

#include <nlohmann/json.hpp>

#include "base/Units.h"

namespace hearth::rest {
namespace {

Json limitsExample() {
    return {{"workspaces", 10},
            {"cpu", "8"},
            {"memory", "16Gi"},
            {"executions", 20},
            {"claimsPerSecond", 5},
            {"weight", 2},
            {"guaranteed", {{"python", 2}}}};
}

}  // namespace

Schema quotaLimitsSchema() {
    // The reader of the file of quotas checks the values, too; it answers 422 for a wrong one.
    return Schema::object()
        .optional("workspaces", Schema::integer().describe("Open at once, in all pools"))
        .optional("cpu", Schema::string().sizes(1, 32).describe(
                             "Processors of all workspaces, as \"4\" or \"500m\""))
        .optional("memory",
                  Schema::string().sizes(1, 32).describe("Memory of all workspaces, as \"8Gi\""))
        .optional("gpus", Schema::integer().describe("GPUs of all workspaces"))
        .optional("executions", Schema::integer().describe("Executions that run at once"))
        .optional("claimsPerSecond", Schema::integer().describe("Workspaces claimed in a second"))
        .optional("claimBurst", Schema::integer().describe(
                                    "Workspaces claimed at once; default: twice claimsPerSecond"))
        .optional("weight", Schema::integer().fallback(1).describe(
                                "Claims served in a row when it is the tenant's turn, 1 to 100"))
        .optional("guaranteed", Schema::any().describe("Workspaces kept for it, by pool"))
        .example(limitsExample())
        .named("QuotaLimits");
}

Schema quotaSchema() {
    return Schema::object()
        .required("tenant",
                  Schema::string().describe("`*`: the quota of every tenant without its own"))
        .required("source", Schema::oneOf(controller::kQuotaSources.all()))
        .required("quota", quotaLimitsSchema())
        .required("use", Schema::object()
                             .required("workspaces", Schema::integer())
                             .required("cpu", Schema::string())
                             .required("memoryBytes", Schema::integer())
                             .required("gpus", Schema::integer())
                             .required("executions", Schema::integer())
                             .named("QuotaUse"))
        .example({{"tenant", "shop"},
                  {"source", "store"},
                  {"quota", limitsExample()},
                  {"use",
                   {{"workspaces", 3},
                    {"cpu", "3"},
                    {"memoryBytes", 1610612736},
                    {"gpus", 0},
                    {"executions", 1}}}})
        .named("Quota");
}

Json quotaJson(const controller::QuotaView& view) {
    return {{"tenant", view.tenant},
            {"source", controller::kQuotaSources.of(view.source)},
            {"quota", controller::quotaDocument(view.spec)},
            {"use",
             {{"workspaces", view.use.workspaces},
              {"cpu", formatMilliCpu(static_cast<std::uint32_t>(view.use.milli_cpu))},
              {"memoryBytes", view.use.memory_bytes},
              {"gpus", view.use.gpus},
              {"executions", view.use.executions}}}};
}

}  // namespace hearth::rest
