#include "api/auth/oidc/Issuers.h"

#include <optional>
#include <utility>

namespace hearth::auth {

Issuers::Issuers(std::vector<IssuerConfig> configs, const Clock& clock, metrics::Log& log) {
    for (IssuerConfig& config : configs) {
        issuers_.push_back(std::make_unique<Issuer>(std::move(config), clock, log));
    }
}

std::vector<std::string> Issuers::names() const {
    std::vector<std::string> all;
    for (const auto& issuer : issuers_) all.push_back(issuer->name());
    return all;
}

TokenVerdict Issuers::check(std::string_view token) const {
    const std::optional<Jwt> jwt = readJwt(token);
    if (!jwt) return TokenFault::Malformed;
    const std::string named = textAt(jwt->claims, "iss");
    for (const auto& issuer : issuers_) {
        if (issuer->name() == named) return issuer->check(*jwt);
    }
    return TokenFault::Issuer;
}

}  // namespace hearth::auth
