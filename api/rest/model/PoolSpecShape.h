#pragma once

#include "api/rest/schema/Schema.h"

namespace hearth::rest {

/// The `spec` of a pool, in manifests and answers alike, so that a client can send back what it has
/// read. It describes; the reader of manifests (controller/spec) is what checks.
Schema poolSpecSchema();

}  // namespace hearth::rest
