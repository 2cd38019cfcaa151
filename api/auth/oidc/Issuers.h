#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/auth/oidc/Issuer.h"
#include "api/auth/oidc/IssuerConfig.h"
#include "base/Clock.h"
#include "metrics/Log.h"

namespace hearth::auth {

/// All issuers whose tokens are accepted. Thread-safe.
class Issuers {
public:
    /// Arguments and errors as for Issuer.
    Issuers(std::vector<IssuerConfig> configs, const Clock& clock, metrics::Log& log);

    bool any() const noexcept { return !issuers_.empty(); }
    std::vector<std::string> names() const;
    /// Checks a token in three parts.
    TokenVerdict check(std::string_view token) const;

private:
    std::vector<std::unique_ptr<Issuer>> issuers_;
};

}  // namespace hearth::auth
