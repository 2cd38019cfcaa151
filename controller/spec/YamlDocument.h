#pragma once

#include <string>
#include <string_view>

#include "base/Json.h"

namespace hearth::controller {

/// Reads a YAML text of exactly one document, by the rules of manifests. Throws Error(InvalidSpec)
/// with the line in `source`.
Json parseYamlDocument(const std::string& text, std::string_view source);

}  // namespace hearth::controller
