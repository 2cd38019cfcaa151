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

/// Identifies the sender of a request. Thread-safe; no I/O.
///
/// `Authorization: Bearer <token>` (the scheme in any case) is looked up in the tokens. While the
/// instance is open (Tokens::open), loopback peers without a proxy in between are admin of tenant
/// `default`, and other peers are refused. Without tokens and not open, everybody is refused. A
/// token that is sent is always checked, even on a server without tokens, so that a client with a
/// stale token does not become admin by accident. A token for one workspace (WorkspaceToken.h) is
/// accepted only by a caller that limits its bearer to that workspace. A token in three parts comes
/// from an OpenID Connect issuer, if any are configured: the answer to a refused one does not give
/// the reason, but the audit log does.
class Authenticator {
public:
    /// `key`: signs the tokens for one workspace; empty: there are none.
    explicit Authenticator(const controller::Tokens& tokens, std::string key = {},
                           const Issuers* issuers = nullptr,
                           const ProtectedResource* resource = nullptr)
        : tokens_(tokens), key_(std::move(key)), issuers_(issuers), resource_(resource) {}

    /// Throws Error(Unauthenticated), Error(Forbidden) for the token of one workspace, and
    /// Error(Unavailable) while an issuer's keys are read.
    controller::Principal authenticate(api::Request& request) const;
    /// Also accepts the token of one workspace: Principal::workspace must then be enforced.
    controller::Principal authenticateAny(api::Request& request) const;
    /// True if no caller is served without a token.
    bool needsToken() const { return !tokens_.open() || hasIssuers(); }

private:
    controller::Principal bearer(api::Request& request, std::string_view token) const;

    controller::Principal issued(api::Request& request, std::string_view token) const;
    bool hasIssuers() const { return issuers_ != nullptr && issuers_->any(); }

    const controller::Tokens& tokens_;
    const std::string key_;
    const Issuers* const issuers_;             ///< null: there are none
    const ProtectedResource* const resource_;  ///< null: clients do not learn of issuers
};

}  // namespace hearth::auth
