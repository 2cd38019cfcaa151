#pragma once

#include <string>

#include "base/Json.h"

namespace hearth::cli {

/// A document of YAML. It is ASCII, everything else escaped, so that no value acts on a terminal; a
/// string that would be read as another type is quoted.
std::string yamlText(const Json& value);

}  // namespace hearth::cli
