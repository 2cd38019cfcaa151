#pragma once

#include "controller/contract/Principal.h"

/// Who asks, where a test needs more than one.
namespace hearth::controller::test {

inline const Principal kTenant{"red", Role::User, ""};
inline const Principal kOther{"other", Role::User, ""};
inline const Principal kOperator{"ops", Role::Operator, ""};

}  // namespace hearth::controller::test
