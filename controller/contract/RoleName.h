#pragma once

#include "base/Texts.h"
#include "controller/contract/Principal.h"

namespace hearth::controller {

/// The roles as settings, tokens and answers call them.
inline constexpr Texts<Role, 3> kRoles{{"user", "operator", "admin"}};

}  // namespace hearth::controller
