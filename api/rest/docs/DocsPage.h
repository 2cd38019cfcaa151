#pragma once

#include <string>

#include "base/Json.h"

namespace hearth::rest {

/// An OpenAPI document as one HTML page that needs nothing else: no script, no outside asset. All
/// text is escaped. Pure.
std::string docsPage(const Json& open_api);

}  // namespace hearth::rest
