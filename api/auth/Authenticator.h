#pragma once

#include "api/http/Handler.h"
#include "controller/Principal.h"
#include "controller/Tokens.h"

namespace hearth::auth {

/// Says who sends a request. Thread-safe; no I/O.
///
/// `Authorization: Bearer <token>` (the scheme in any case) is looked up in the tokens. While none
/// is configured, loopback peers are admin of tenant `default` and nobody else is served. A token
/// that is given is always checked: sending one to a server that knows none is refused, so that a
/// client with a stale token does not act as admin by accident.
class Authenticator {
public:
    explicit Authenticator(const controller::Tokens& tokens) : tokens_(tokens) {}

    /// Throws Error(Unauthenticated).
    controller::Principal authenticate(api::Request& request) const;

private:
    const controller::Tokens& tokens_;
};

}  // namespace hearth::auth
