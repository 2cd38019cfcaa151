#pragma once

#include "api/rest/schema/Schema.h"

namespace hearth::rest {

/// The `spec` of a pool, the same in manifests and answers, so that a client can send back the spec
/// it has read. It only describes; the reader of manifests (controller/spec) checks.
Schema poolSpecSchema();

}  // namespace hearth::rest
