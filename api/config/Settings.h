#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/command/Layers.h"
#include "api/config/ServeConfig.h"
#include "base/Json.h"

namespace hearth::cli {

/// The types of settings: each says how the file gives it, which texts are right and where it goes.
struct SettingType {
    /// Paths in the file are relative to the file. Lines may be one text in place of a list.
    enum class Shape { Text, Path, List, Paths, Lines, Tokens };

    Shape shape = Shape::Text;
    std::string words = {};                 ///< for the reference: "a number from 1 to 1024"
    std::vector<std::string> choices = {};  ///< for completion, if there are few
    /// Throws UsageError or Error for a wrong text, without its place. Empty: not of ServeConfig.
    std::function<void(ServeConfig&, const LayeredValue&)> set = {};
    std::function<Setting<Json>(const ServeConfig&)> show = {};

    bool list() const { return shape >= Shape::List; }
};

/// One setting of `hearth serve`. The variable is HEARTH_<FLAG>.
struct SettingRow {
    std::string flag;      ///< "data-dir"; empty: by the file only
    std::string value;     ///< what stands for the value, "DIR"; empty: a switch
    std::string key;       ///< of the file, "images.onDemand.allow"; empty: by flag only
    SettingType type;      ///< see above
    std::string fallback;  ///< the default
    std::string help;      ///< one sentence, no full stop

    const std::string& name() const { return key.empty() ? flag : key; }
};

/// The one table: flags, variables, keys, checks, defaults, help and reference are made from it.
const std::vector<SettingRow>& settings();

/// The page docs/configuration.md.
std::string configReference();

}  // namespace hearth::cli
