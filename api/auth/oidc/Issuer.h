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

/// The keys that the token needs are being read: the same request may work in a moment.
struct KeysPending {};
using TokenVerdict = std::variant<controller::Authenticated, TokenFault, KeysPending>;

/// One issuer. Its own thread reads its keys at the start, every five minutes, and when a token
/// names an unknown key, but then at most once per half minute. While the issuer is away the
/// previous keys stay valid. Checks never wait for it. Thread-safe.
class Issuer {
public:
    /// References outlive it. Throws Error(InvalidArgument) for a `ca_file` that cannot be read.
    Issuer(IssuerConfig config, const Clock& clock, metrics::Log& log);
    ~Issuer();
    Issuer(const Issuer&) = delete;
    Issuer& operator=(const Issuer&) = delete;

    const std::string& name() const noexcept { return config_.issuer; }
    /// Checks a token that names this issuer. The bearer's right ends with the token.
    TokenVerdict check(const Jwt& token) const;

private:
    std::optional<TokenFault> checkHeader(const Jwt& token) const;
    std::optional<TokenFault> checkTimes(const Json& claims) const;
    bool isForUs(const Json& claims) const;
    std::variant<controller::Principal, TokenFault> principalOf(const Json& claims) const;
    std::shared_ptr<const SigningKeys> keys() const;
    /// Requests another read of the keys. False if the last read is too recent.
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
    std::string trouble_;  ///< used by the thread: the logged trouble
    std::jthread thread_;  ///< last: it uses the others
};

}  // namespace hearth::auth
