#pragma once

#include <map>
#include <string>
#include <string_view>

#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// Makes programs trust these certificates in addition to the image's own, if the image keeps those
/// in one of the usual files: writes both to one file, and adds the variables that name it to `env`
/// unless they are set. False if the file cannot be written.
bool makeTrusted(const Settings& settings, std::string_view certificates,
                 std::map<std::string, std::string>& env);

}  // namespace hearth::agent
