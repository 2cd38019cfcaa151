#pragma once

#include <string>
#include <string_view>
#include <utility>

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
/// stale token does not become admin by accident. A token for one workspace (WorkspaceToken.h) is
/// only taken by a caller that keeps its bearer to that workspace.
class Authenticator {
public:
    /// `key`: what tokens for one workspace are signed with; empty: there are none.
    explicit Authenticator(const controller::Tokens& tokens, std::string key = {})
        : tokens_(tokens), key_(std::move(key)) {}

    /// Throws Error(Unauthenticated), and Error(Forbidden) for the token of one workspace.
    controller::Principal authenticate(api::Request& request) const;
    /// Also takes the token of one workspace: Principal::workspace must then be enforced.
    controller::Principal authenticateAny(api::Request& request) const;

private:
    controller::Principal bearer(api::Request& request, std::string_view token) const;

    const controller::Tokens& tokens_;
    const std::string key_;
};

}  // namespace hearth::auth
