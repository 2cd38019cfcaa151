#pragma once

#include "base/Texts.h"
#include "controller/contract/Principal.h"

namespace hearth::controller {

/// The roles' names in settings, tokens and answers.
inline constexpr Texts<Role, 3> kRoles{{"user", "operator", "admin"}};

}  // namespace hearth::controller
