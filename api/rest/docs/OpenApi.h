#pragma once

#include "api/rest/gate/Operation.h"

namespace hearth::rest {

/// Makes the OpenAPI 3.1 document of a table of operations, without the hidden ones. Pure.
Json openApiDocument(const Operations& operations);

}  // namespace hearth::rest
