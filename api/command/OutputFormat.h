#pragma once

#include <string>
#include <vector>

#include "api/command/Options.h"

namespace hearth::cli {

enum class OutputFormat { Table, Wide, Json, Yaml, Name };

/// --output table|json, and with `short_form` also --json, its older spelling.
std::vector<Flag> outputFlags(bool short_form = false);
/// `flags` and those.
std::vector<Flag> withOutputFlags(std::vector<Flag> flags, bool short_form = false);
/// Throws UsageError for any other format.
bool wantsJson(const Options& options);

/// `flags`, --output with every format, and --quiet for names alone: for commands that show what
/// the server has.
std::vector<Flag> withListFlags(std::vector<Flag> flags);
/// Throws UsageError for a format that is none.
OutputFormat listFormat(const Options& options);

}  // namespace hearth::cli
