#pragma once

#include "api/http/Handler.h"
#include "controller/contract/Principal.h"
#include "controller/contract/Tokens.h"

namespace hearth::auth {

/// Says who sends a request. Thread-safe; no I/O.
///
/// `Authorization: Bearer <token>` (the scheme in any case) is looked up in the tokens. While the
/// instance is open (Tokens::open), loopback peers that no proxy stands before are admin of tenant
/// `default` and nobody else is served. Without tokens and not open, it serves nobody. A token
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
