#pragma once

#include <string>
#include <vector>

#include "api/config/ServeConfig.h"

namespace hearth::cli {

/// Puts the content of the YAML file of `hearth serve` into `layers`; returns its tokens. At most 1
/// MiB. Throws UsageError that names file and line.
Setting<std::vector<TokenConfig>> readConfigFile(const std::string& path, Layers& layers);
/// The same from a text; messages call the file `name`, paths are relative to `directory`.
Setting<std::vector<TokenConfig>> readConfigText(const std::string& text, const std::string& name,
                                                 const std::string& directory, Layers& layers);

}  // namespace hearth::cli
