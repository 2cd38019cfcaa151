#pragma once

#include <string>

#include "api/config/ServeConfig.h"

namespace hearth::cli {

/// Which runtime serves, and why, in words.
struct RuntimeDecision {
    RuntimeChoice choice = RuntimeChoice::Oci;  ///< never Auto
    std::string reason;
};

/// With `auto`: the embedded runtime if we are root and its program exists; else docker if an
/// Engine answers; else the embedded one, whose error then says what is missing.
RuntimeDecision decideRuntime(const ServeConfig& config);

}  // namespace hearth::cli
