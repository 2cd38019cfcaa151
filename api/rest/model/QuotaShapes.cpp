#include "api/rest/model/Answers.h"
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

static void listFields(Shape<controller::QuotaUse>& shape) {
    using View = controller::QuotaUse;
    shape.schema().named("QuotaUse");
    shape.field("workspaces", &View::workspaces)
        .field("cpu", &View::milli_cpu,
               {[](std::uint64_t cpu) { return formatMilliCpu(static_cast<std::uint32_t>(cpu)); }})
        .field("memoryBytes", &View::memory_bytes)
        .field("gpus", &View::gpus)
        .field("executions", &View::executions);
}

void listFields(Shape<controller::QuotaView>& shape) {
    using View = controller::QuotaView;
    shape.schema().named("Quota").example({{"tenant", "shop"},
                                           {"source", "store"},
                                           {"quota", limitsExample()},
                                           {"use",
                                            {{"workspaces", 3},
                                             {"cpu", "3"},
                                             {"memoryBytes", 1610612736},
                                             {"gpus", 0},
                                             {"executions", 1}}}});
    shape.field("tenant", &View::tenant, "`*`: the quota of every tenant without its own")
        .field("source", &View::source, controller::kQuotaSources)
        .field("quota", &View::spec, {controller::quotaDocument, quotaLimitsSchema()})
        .field("use", &View::use);
}

}  // namespace hearth::rest
