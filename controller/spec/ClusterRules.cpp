#include "controller/spec/ClusterRules.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/Error.h"
#include "base/Json.h"
#include "pool/image/Reference.h"

namespace hearth::controller {
namespace {

/// The places in a volume that name a claim whose content it has: the claim or a copy of it.
constexpr const char* kClaimNames[] = {"/persistentVolumeClaim/claimName",
                                       "/ephemeral/volumeClaimTemplate/spec/dataSource/name",
                                       "/ephemeral/volumeClaimTemplate/spec/dataSourceRef/name"};

/// Relies on the shape checked when the pool was read (readPodTemplate): volumes are objects.
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
                             "is the claim of the servers' own volume, which holds all history and "
                             "artifacts: use another claim"});
        }
    }
}

/// For a node, a name in one machine's store is a short reference to Docker Hub, without a digest.
void checkImage(const PoolSpec& spec, std::vector<FieldError>& wrong) {
    if (pool::image::isDigest(spec.image)) {
        wrong.push_back({"/spec/template/image",
                         "names no registry that nodes could pull it from: " + spec.image});
    } else if (pool::image::isImageName(spec.image) && !spec.allow_tags) {
        wrong.push_back({"/spec/template/image",
                         "is a name in one machine's image store, and nodes would pull whatever "
                         "docker.io/library/" +
                             spec.image + ":latest is at that time"});
    }
}

}  // namespace

void requireFitsCluster(const PoolSpec& spec, const std::string& own_claim) {
    std::vector<FieldError> wrong;
    checkImage(spec, wrong);
    const bool image = !wrong.empty();
    checkVolumes(spec, own_claim, wrong);
    if (wrong.empty()) return;
    Error error(ErrorCode::InvalidSpec, "the pool cannot run in this cluster: " +
                                            wrong.front().pointer + " " + wrong.front().reason);
    for (FieldError& each : wrong) error.field(std::move(each.pointer), std::move(each.reason));
    if (image) {
        error.hint(
            "push the image to a registry that the nodes reach and name it as "
            "REPOSITORY@sha256:..., which also works on one machine; or name a tag and set "
            "template.allowTags: true");
    }
    throw error;
}

}  // namespace hearth::controller
