#pragma once

#include <string>
#include <vector>

#include "api/command/Options.h"

namespace hearth::cli {

enum class OutputFormat { Table, Wide, Json, Yaml, Name };

/// --output table|json, and with `short_form` also --json.
std::vector<Flag> outputFlags(bool short_form = false);
/// `flags` plus outputFlags().
std::vector<Flag> withOutputFlags(std::vector<Flag> flags, bool short_form = false);
/// Throws UsageError for any other format.
bool wantsJson(const Options& options);

/// `flags`, --output with every format, and --quiet for names only: for commands that list the
/// server's objects.
std::vector<Flag> withListFlags(std::vector<Flag> flags);
/// Throws UsageError for an unknown format.
OutputFormat listFormat(const Options& options);

}  // namespace hearth::cli
