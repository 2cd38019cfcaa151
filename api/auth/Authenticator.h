#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "api/auth/ProtectedResource.h"
#include "api/auth/oidc/Issuers.h"
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
/// only taken by a caller that keeps its bearer to that workspace. A token in three parts is one of
/// an OpenID Connect issuer, where there are any: the answer to one that is not taken does not say
/// why, but the audit log does.
class Authenticator {
public:
    /// `key`: what tokens for one workspace are signed with; empty: there are none.
    explicit Authenticator(const controller::Tokens& tokens, std::string key = {},
                           const Issuers* issuers = nullptr,
                           const ProtectedResource* resource = nullptr)
        : tokens_(tokens), key_(std::move(key)), issuers_(issuers), resource_(resource) {}

    /// Throws Error(Unauthenticated), Error(Forbidden) for the token of one workspace, and
    /// Error(Unavailable) while an issuer's keys are read.
    controller::Principal authenticate(api::Request& request) const;
    /// Also takes the token of one workspace: Principal::workspace must then be enforced.
    controller::Principal authenticateAny(api::Request& request) const;

private:
    controller::Principal bearer(api::Request& request, std::string_view token) const;

    controller::Principal issued(api::Request& request, std::string_view token) const;
    bool hasIssuers() const { return issuers_ != nullptr && issuers_->any(); }

    const controller::Tokens& tokens_;
    const std::string key_;
    const Issuers* const issuers_;             ///< null: there are none
    const ProtectedResource* const resource_;  ///< null: clients are not told of issuers
};

}  // namespace hearth::auth
