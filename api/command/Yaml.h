#pragma once

#include <string>

#include "base/Json.h"

namespace hearth::cli {

/// Makes a YAML document. It is ASCII, with everything else escaped, so that no value acts on a
/// terminal; a string that could be read as another type is quoted.
std::string yamlText(const Json& value);

}  // namespace hearth::cli
