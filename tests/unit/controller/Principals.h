#pragma once

#include "controller/contract/Principal.h"

/// Callers, for tests that need more than one.
namespace hearth::controller::test {

inline const Principal kTenant{"red", Role::User, ""};
inline const Principal kOther{"other", Role::User, ""};
inline const Principal kOperator{"ops", Role::Operator, ""};

}  // namespace hearth::controller::test
