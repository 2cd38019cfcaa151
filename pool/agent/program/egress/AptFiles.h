#pragma once

#include <map>
#include <string>

#include "pool/agent/program/core/JsonValue.h"
#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// Makes the image's apt, if it has one, take packages from these archives ("apt" of bind) and keep
/// its files in the workspace: writes its settings and its list of sources, and adds the variable
/// that names the settings to `env`, unless it is set. If they cannot be written, apt knows no
/// archive, and nothing else fails.
void makeAptKnown(const Settings& settings, const JsonValue& archives,
                  std::map<std::string, std::string>& env);

}  // namespace hearth::agent
