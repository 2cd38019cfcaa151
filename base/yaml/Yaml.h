#pragma once

#include <cstddef>
#include <string>

#include "base/Json.h"

namespace hearth {

/// How much a foreign YAML text may ask of us; an alias counts as often as it stands.
struct YamlLimits {
    std::size_t bytes = 1U << 20U;
    std::size_t depth = 32;
    std::size_t values = 20'000;
};

/// The one document of a YAML text as JSON, by the core schema of YAML 1.2: no duplicate key, every
/// key a plain name. Throws Error(InvalidArgument) that begins with "line <number>: ".
Json parseYaml(const std::string& text, const YamlLimits& limits = {});

}  // namespace hearth
