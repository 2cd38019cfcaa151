#pragma once

#include <string>

#include "controller/Services.h"

namespace hearth::test {

using controller::Principal;

inline const std::string kWorkspace = "ws_00000000000000000000000000000001";
inline const std::string kExecution = "ex_00000000000000000000000000000001";
inline const std::string kSandbox = "sb_00000000000000000000000000000001";
inline const std::string kContext = "cx_00000000000000000000000000000001";
inline const std::string kTime = "2026-11-21T03:04:05.678Z";

}  // namespace hearth::test
