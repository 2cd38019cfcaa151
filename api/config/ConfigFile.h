#pragma once

#include <string>
#include <vector>

#include "api/config/ServeConfig.h"

namespace hearth::cli {

/// What only the file can say.
struct FileLists {
    Setting<std::vector<TokenConfig>> tokens = {};
    Setting<std::vector<QuotaConfig>> quotas = {};
};

/// Puts what the YAML file of `hearth serve` says into `layers`; gives its lists. At most 1 MiB.
/// Throws UsageError that names file and line.
FileLists readConfigFile(const std::string& path, Layers& layers);
/// The same from a text; `name` stands for the file in messages, paths are relative to `directory`.
FileLists readConfigText(const std::string& text, const std::string& name,
                         const std::string& directory, Layers& layers);

}  // namespace hearth::cli
