#pragma once

#include "api/http/Handler.h"
#include "controller/contract/Principal.h"
#include "controller/contract/Tokens.h"

namespace hearth::auth {

/// Finds out who sends a request. Thread-safe; no I/O.
///
/// `Authorization: Bearer <token>` (the scheme in any case) is looked up in the tokens. While the
/// instance is open (Tokens::open), loopback peers without a proxy in between are admin of tenant
/// `default`, and other peers are refused. Without tokens and not open, everybody is refused. A
/// token that is sent is always checked, even on a server that has none, so that a client with a
/// stale token does not become admin by accident.
class Authenticator {
public:
    explicit Authenticator(const controller::Tokens& tokens) : tokens_(tokens) {}

    /// Throws Error(Unauthenticated).
    controller::Principal authenticate(api::Request& request) const;

private:
    const controller::Tokens& tokens_;
};

}  // namespace hearth::auth
