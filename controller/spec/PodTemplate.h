#pragma once

#include "base/Fields.h"
#include "base/Json.h"

namespace hearth::controller {

/// Reads `template.podTemplate`: what a cluster gives a pool's Pods besides their manifest (places,
/// volumes, resources of other kinds), in the shape of a PodTemplateSpec. Kubernetes checks the
/// values; this checks that nothing in it weakens what shuts a sandbox in, or takes the place of
/// what Hearth sets. `out` becomes the object as it was written.
void readPodTemplate(Fields fields, Json& out);

}  // namespace hearth::controller
