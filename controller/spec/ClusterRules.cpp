#include "controller/spec/ClusterRules.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/Error.h"
#include "base/Json.h"

namespace hearth::controller {
namespace {

/// The places of a volume by which it has the content of a claim: itself, or a copy of it.
constexpr const char* kClaimNames[] = {"/persistentVolumeClaim/claimName",
                                       "/ephemeral/volumeClaimTemplate/spec/dataSource/name",
                                       "/ephemeral/volumeClaimTemplate/spec/dataSourceRef/name"};

/// The shape was checked when the pool was read (readPodTemplate): volumes are objects.
void checkVolumes(const PoolSpec& spec, const std::string& own_claim,
                  std::vector<FieldError>& wrong) {
    const Json::json_pointer at("/spec/volumes");
    if (own_claim.empty() || !spec.pod_template.contains(at)) return;
    const Json& volumes = spec.pod_template[at];
    for (std::size_t i = 0; i < volumes.size(); ++i) {
        for (const char* place : kClaimNames) {
            const Json::json_pointer name(place);
            if (!volumes[i].contains(name) || volumes[i][name] != own_claim) continue;
            wrong.push_back({"/spec/template/podTemplate/spec/volumes/" + std::to_string(i) + place,
                             "is the claim of the servers' own volume, which has everybody's "
                             "history and artifacts: use another claim"});
        }
    }
}

}  // namespace

void requireFitsCluster(const PoolSpec& spec, const std::string& own_claim) {
    std::vector<FieldError> wrong;
    checkVolumes(spec, own_claim, wrong);
    if (wrong.empty()) return;
    Error error(ErrorCode::InvalidSpec, "the pool cannot be had in this cluster: " +
                                            wrong.front().pointer + " " + wrong.front().reason);
    for (FieldError& each : wrong) error.field(std::move(each.pointer), std::move(each.reason));
    throw error;
}

}  // namespace hearth::controller
