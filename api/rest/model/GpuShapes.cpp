#include "api/rest/model/GpuShapes.h"

#include <nlohmann/json.hpp>

#include "api/rest/model/Views.h"

namespace hearth::rest {
namespace {

Schema textOrNoneSchema() {
    return Schema::string().nullable();
}

}  // namespace

Schema gpuSchema() {
    const Schema holder = Schema::object()
                              .required("sandboxId", Schema::string())
                              .required("pool", Schema::string())
                              .required("workspaceId", textOrNoneSchema())
                              .required("tenant", textOrNoneSchema())
                              .named("GpuHolder");
    return Schema::object()
        .required("uuid", Schema::string())
        .required("product", Schema::string())
        .required("memoryBytes", Schema::integer())
        .required("parent", textOrNoneSchema().describe("The GPU of a MIG instance"))
        .required("profile", textOrNoneSchema().describe("The profile of a MIG instance"))
        .required("state",
                  Schema::oneOf(controller::kGpuStates.all())
                      .describe("Free: scrubbed, and nobody's. Scrubbing: between two users. "
                                "Faulty: the driver reports a fault. Condemned: its scrub has "
                                "failed. Split: in MIG mode. Gone: no longer there"))
        .required("reason", textOrNoneSchema().describe("Why it is Faulty or Condemned"))
        .required("holders", Schema::array(holder))
        .example({{"uuid", "GPU-0f3c2a9e-1111-2222-3333-444455556666"},
                  {"product", "NVIDIA H100 80GB HBM3"},
                  {"memoryBytes", 85520809984},
                  {"parent", nullptr},
                  {"profile", nullptr},
                  {"state", "Leased"},
                  {"reason", nullptr},
                  {"holders",
                   {{{"sandboxId", "sb_5f0c2c9a3d1e4b7f8a6b5c4d3e2f1a0b"},
                     {"pool", "cuda"},
                     {"workspaceId", nullptr},
                     {"tenant", nullptr}}}}})
        .named("Gpu");
}

Json gpuJson(const controller::GpuView& view) {
    Json holders = Json::array();
    for (const controller::GpuHolder& holder : view.holders) {
        holders.push_back({{"sandboxId", holder.sandbox},
                           {"pool", holder.pool},
                           {"workspaceId", orNull(holder.workspace)},
                           {"tenant", orNull(holder.tenant)}});
    }
    return {{"uuid", view.uuid},
            {"product", view.product},
            {"memoryBytes", view.memory_bytes},
            {"parent", orNull(view.parent)},
            {"profile", orNull(view.profile)},
            {"state", controller::kGpuStates.of(view.state)},
            {"reason", orNull(view.reason)},
            {"holders", std::move(holders)}};
}

Schema gpuProductSchema() {
    return Schema::object()
        .required("product", Schema::string())
        .required("profile", textOrNoneSchema().describe("The profile of MIG instances"))
        .required("memoryBytes", Schema::integer())
        .required("count", Schema::integer())
        .named("GpuProduct");
}

Json gpuProductsJson(const std::vector<controller::GpuProduct>& products) {
    Json all = Json::array();
    for (const controller::GpuProduct& one : products) {
        all.push_back({{"product", one.product},
                       {"profile", orNull(one.profile)},
                       {"memoryBytes", one.memory_bytes},
                       {"count", one.count}});
    }
    return all;
}

}  // namespace hearth::rest
