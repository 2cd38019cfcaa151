#pragma once

#include "api/rest/gate/Operation.h"

namespace hearth::rest {

/// The OpenAPI 3.1 document of a table of operations; hidden ones are left out. Pure.
Json openApiDocument(const Operations& operations);

}  // namespace hearth::rest
