#pragma once

#include "base/Fields.h"
#include "base/Json.h"

namespace hearth::controller {

/// Reads `template.podTemplate`: additions to the manifest of a pool's Pods in a cluster (places,
/// volumes, resources of other kinds), in the shape of a PodTemplateSpec. Kubernetes checks the
/// values; this checks that nothing in it weakens a sandbox's isolation, or replaces a
/// setting of Hearth. `out` becomes the object as it was written.
void readPodTemplate(Fields fields, Json& out);

}  // namespace hearth::controller
