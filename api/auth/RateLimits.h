#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "api/http/Handler.h"
#include "base/Clock.h"
#include "base/Mutex.h"
#include "base/tenants/TokenBucket.h"

namespace hearth::auth {

/// Limits the requests per second of each tenant: a bucket of `burst` tokens that fills at that
/// rate. Thread-safe; the clock must outlive it.
class RateLimits {
public:
    /// The values of RateLimit-Limit, -Remaining and -Reset, and if the request may pass.
    struct Verdict {
        bool allowed = true;
        std::uint32_t limit = 0;              ///< the bucket's size
        std::uint32_t remaining = 0;          ///< requests that may follow at once
        std::chrono::seconds reset{0};        ///< until the bucket is full again
        std::chrono::seconds retry_after{0};  ///< if refused: until the next one may pass
    };

    /// `per_second` 0: no limit. `burst` 0: twice `per_second`.
    RateLimits(std::uint32_t per_second, std::uint32_t burst, const Clock& clock)
        : per_second_(per_second), burst_(burst != 0 ? burst : 2 * per_second), clock_(clock) {}

    /// Takes one token; nullopt if there is no limit.
    std::optional<Verdict> take(const std::string& tenant) const;

private:
    const std::uint32_t per_second_;
    const std::uint32_t burst_;
    const Clock& clock_;
    mutable Mutex mutex_;
    mutable std::map<std::string, TokenBucket> buckets_
        HEARTH_GUARDED_BY(mutex_);  ///< without full ones
};

/// Takes one token for a request; its answer reports the rest in RateLimit headers. Throws
/// Error(RateLimited) if the tenant has none left.
void require(const RateLimits& limits, api::Request& request, const std::string& tenant);

}  // namespace hearth::auth
