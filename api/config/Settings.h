#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/command/Layers.h"
#include "api/config/ServeConfig.h"
#include "base/Json.h"

namespace hearth::cli {

/// The type of a setting: its form in the file, its valid texts and its field.
struct SettingType {
    /// Paths in the file are relative to the file.
    enum class Shape { Text, Path, List, Paths, Tokens };

    Shape shape = Shape::Text;
    std::string words = {};                 ///< for the reference: "a number from 1 to 1024"
    std::vector<std::string> choices = {};  ///< for completion, if there are few
    /// Throws UsageError or Error for a wrong text, without its place. Empty: not in ServeConfig.
    std::function<void(ServeConfig&, const LayeredValue&)> set = {};
    std::function<Setting<Json>(const ServeConfig&)> show = {};

    bool list() const { return shape >= Shape::List; }
};

/// One setting of `hearth serve`. The variable is HEARTH_<FLAG>.
struct SettingRow {
    std::string flag;      ///< "data-dir"; empty: only in the file
    std::string value;     ///< the value's name in the help, "DIR"; empty: a switch
    std::string key;       ///< in the file, "images.onDemand.allow"; empty: only a flag
    SettingType type;      ///< see above
    std::string fallback;  ///< the default
    std::string help;      ///< one sentence, no full stop

    const std::string& name() const { return key.empty() ? flag : key; }
};

/// The one table: it generates flags, variables, keys, checks, defaults, help and reference.
const std::vector<SettingRow>& settings();

/// The page docs/configuration.md.
std::string configReference();

}  // namespace hearth::cli
