#include "api/rest/model/Answers.h"

namespace hearth::rest {

static void listFields(Shape<controller::GpuHolder>& shape) {
    using View = controller::GpuHolder;
    shape.schema().named("GpuHolder");
    shape.field("sandboxId", &View::sandbox)
        .field("pool", &View::pool)
        .orNull("workspaceId", &View::workspace)
        .orNull("tenant", &View::tenant);
}

void listFields(Shape<controller::GpuView>& shape) {
    using View = controller::GpuView;
    shape.schema().named("Gpu").example({{"uuid", "GPU-0f3c2a9e-1111-2222-3333-444455556666"},
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
                                            {"tenant", nullptr}}}}});
    shape.field("uuid", &View::uuid)
        .field("product", &View::product)
        .field("memoryBytes", &View::memory_bytes)
        .orNull("parent", &View::parent, "The GPU of a MIG instance")
        .orNull("profile", &View::profile, "The profile of a MIG instance")
        .field("state", &View::state,
               {controller::kGpuStates,
                "Free: scrubbed, and nobody's. Scrubbing: between two users. Faulty: the driver "
                "reports a fault. Condemned: its scrub has failed. Split: in MIG mode. Gone: no "
                "longer there"})
        .orNull("reason", &View::reason, "Why it is Faulty or Condemned")
        .field("holders", &View::holders);
}

void listFields(Shape<controller::GpuProduct>& shape) {
    using View = controller::GpuProduct;
    shape.schema().named("GpuProduct");
    shape.field("product", &View::product)
        .orNull("profile", &View::profile, "The profile of MIG instances")
        .field("memoryBytes", &View::memory_bytes)
        .field("count", &View::count);
}

}  // namespace hearth::rest
