#pragma once

#include "controller/Principal.h"

namespace hearth::auth {

/// "user", "operator", "admin".
inline const char* roleName(controller::Role role) {
    switch (role) {
        case controller::Role::Operator:
            return "operator";
        case controller::Role::Admin:
            return "admin";
        case controller::Role::User:
            break;
    }
    return "user";
}

}  // namespace hearth::auth
