#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Texts.h"
#include "base/tenants/AccessRight.h"
#include "controller/contract/Principal.h"

namespace hearth::controller {

enum class TokenSource : std::uint8_t { Config, Store };
inline constexpr Texts<TokenSource, 2> kTokenSources{{"config", "store"}};

struct TokenView {
    std::string id;  ///< "tk_…"
    std::string name;
    std::string tenant;
    Role role = Role::User;
    std::string created_at;
    std::optional<std::string> expires_at;
    TokenSource source = TokenSource::Store;
};

/// The caller, and how long it may get answers.
struct Authenticated {
    Principal who;
    AccessRight right{};
};

/// Takes the place of a token's id if the caller has the data directory itself: no revocation
/// applies to it. No token's id is like it.
inline constexpr const char* kOwnerOfState = "owner";

/// Begins the id of a caller with an OpenID Connect issuer's token: "oidc:login.example#alice".
inline constexpr std::string_view kIssuedPrefix = "oidc:";

/// Opaque bearer tokens, kept as SHA-256 and shown once. Thread-safe; authenticate() does no I/O.
class Tokens {
public:
    virtual ~Tokens() = default;
    /// True if there is any token.
    virtual bool configured() const = 0;
    /// True if loopback callers need no token and are admin of `default`: there is no token, and
    /// there never was one, or the operator opened the instance by a flag.
    virtual bool open() const = 0;
    /// Returns nullopt for an unknown or expired token; the comparison takes constant time.
    /// The caller's right ends with the token.
    virtual std::optional<Authenticated> authenticate(std::string_view token) const = 0;
    /// Returns a loopback caller without a token; nullopt if the instance is not open. Its right
    /// ends when a token is made.
    virtual std::optional<Authenticated> anonymous() const = 0;
    /// Needs Admin, also when it is written: Error(Unauthenticated) if the caller's own token was
    /// removed meanwhile. Returns the token itself, which is not stored and cannot be shown again.
    virtual std::pair<TokenView, std::string> create(const Principal& who, const std::string& name,
                                                     const std::string& tenant, Role role,
                                                     std::optional<std::int64_t> ttl_seconds) = 0;
    virtual std::vector<TokenView> list(const Principal& who) const = 0;
    /// Needs Admin as create() does. On disk when it returns. Error(NotFound); Error(Conflict) for
    /// a token from the configuration and for the last admin token. After any other exception the
    /// token is still valid.
    virtual void remove(const Principal& who, const std::string& id) = 0;
};

}  // namespace hearth::controller
