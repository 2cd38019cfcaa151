#pragma once

#include "api/rest/gate/Operation.h"

namespace hearth::rest {

/// Makes the OpenAPI 3.1 document of a table of operations, without the hidden ones, for a server
/// that asks for tokens. Pure.
Json openApiDocument(const Operations& operations);

/// The same document for a server that asks for none: generators make clients that cannot call
/// without a declared credential.
Json withoutCredentials(Json document);

}  // namespace hearth::rest
