#pragma once

#include <string>

#include "api/config/ServeConfig.h"

namespace hearth::cli {

/// Which runtime serves, and why, in words.
struct RuntimeDecision {
    RuntimeChoice choice = RuntimeChoice::Oci;  ///< never Auto
    std::string reason;
};

/// Looks at this machine only where the configuration says auto: the embedded runtime where we are
/// root and its program is there; else docker where an Engine answers; else the embedded one, whose
/// error then says what is missing.
RuntimeDecision decideRuntime(const ServeConfig& config);

}  // namespace hearth::cli
