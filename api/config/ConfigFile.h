#pragma once

#include <string>
#include <vector>

#include "api/config/ServeConfig.h"

namespace hearth::cli {

/// Puts what the YAML file of `hearth serve` says into `layers`; gives its tokens. At most 1 MiB.
/// Throws UsageError that names file and line.
Setting<std::vector<TokenConfig>> readConfigFile(const std::string& path, Layers& layers);
/// The same from a text; `name` stands for the file in messages, paths are relative to `directory`.
Setting<std::vector<TokenConfig>> readConfigText(const std::string& text, const std::string& name,
                                                 const std::string& directory, Layers& layers);

}  // namespace hearth::cli
