#pragma once

#include <string>
#include <vector>

#include "api/command/Options.h"

namespace hearth::cli {

/// --output table|json, and with `short_form` also --json, its older spelling.
std::vector<Flag> outputFlags(bool short_form = false);
/// `flags` and those.
std::vector<Flag> withOutputFlags(std::vector<Flag> flags, bool short_form = false);
/// Throws UsageError for any other format.
bool wantsJson(const Options& options);

}  // namespace hearth::cli
