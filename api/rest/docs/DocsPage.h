#pragma once

#include <string>

#include "base/Json.h"

namespace hearth::rest {

/// Renders an OpenAPI document as one self-contained HTML page: no script, no outside asset. All
/// text is escaped. Pure.
std::string docsPage(const Json& open_api);

}  // namespace hearth::rest
