#pragma once

#include <map>
#include <string>

#include "pool/agent/program/core/JsonValue.h"

namespace hearth::agent {

/// Makes the image's apt, if it has one, take packages from these archives ("apt" of bind) and keep
/// its files beneath `home`: writes its settings and its list of sources, and adds the variable
/// that names the settings to `env`, unless it is set. If they cannot be written, apt knows no
/// archive, and nothing else fails.
void makeAptKnown(const JsonValue& archives, const std::string& home,
                  std::map<std::string, std::string>& env);

}  // namespace hearth::agent
