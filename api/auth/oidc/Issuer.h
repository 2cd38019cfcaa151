#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <variant>

#include "api/auth/oidc/IssuerConfig.h"
#include "api/auth/oidc/Jwt.h"
#include "api/auth/oidc/SigningKeys.h"
#include "api/auth/oidc/TokenFault.h"
#include "base/Clock.h"
#include "base/Mutex.h"
#include "controller/contract/Tokens.h"
#include "metrics/Log.h"

namespace hearth::auth {

/// The keys that the token needs are being read: the same request works in a moment, if ever.
struct KeysPending {};
using TokenVerdict = std::variant<controller::Authenticated, TokenFault, KeysPending>;

/// One issuer. A thread of its own reads its keys, at the start, every five minutes, and when a
/// token names one that is unknown, but that at most each half minute. While the issuer is away the
/// keys of before are good. Checks never wait for it. Thread-safe.
class Issuer {
public:
    /// References outlive it. Throws Error(InvalidArgument) for a `ca_file` that cannot be read.
    Issuer(IssuerConfig config, const Clock& clock, metrics::Log& log);
    ~Issuer();
    Issuer(const Issuer&) = delete;
    Issuer& operator=(const Issuer&) = delete;

    const std::string& name() const noexcept { return config_.issuer; }
    /// Checks a token that names this issuer. The right of its bearer ends with the token.
    TokenVerdict check(const Jwt& token) const;

private:
    std::optional<TokenFault> checkHeader(const Jwt& token) const;
    std::optional<TokenFault> checkTimes(const Json& claims) const;
    bool isForUs(const Json& claims) const;
    std::variant<controller::Principal, TokenFault> principalOf(const Json& claims) const;
    std::shared_ptr<const SigningKeys> keys() const;
    /// Has the keys read once more. False if the last read is too recent.
    bool askForKeys() const;

    void run(const std::stop_token& stop);
    bool read();
    std::string keysUrl() const;
    Json fetch(const std::string& url, bool with_token) const;

    const IssuerConfig config_;
    const Clock& clock_;
    metrics::Log& log_;
    mutable Mutex mutex_;
    mutable StoppableCondition wanted_changed_;
    std::shared_ptr<const SigningKeys> keys_ HEARTH_GUARDED_BY(mutex_);
    mutable bool wanted_ HEARTH_GUARDED_BY(mutex_) = true;
    std::optional<TimePoint> read_at_ HEARTH_GUARDED_BY(mutex_);
    std::atomic<bool> stopping_{false};
    std::string trouble_;  ///< of the thread: what was logged
    std::jthread thread_;  ///< last: it uses the others
};

}  // namespace hearth::auth
