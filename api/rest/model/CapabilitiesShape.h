#pragma once

#include "api/rest/schema/Schema.h"

namespace hearth::rest {

/// GET /v1/capabilities. Open: a later version may have more fields.
Schema capabilitiesSchema();

}  // namespace hearth::rest
