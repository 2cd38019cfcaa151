#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "api/mcp/tools/Toolbox.h"
#include "base/Clock.h"
#include "base/task/Executor.h"
#include "base/tenants/TenantPlaces.h"

namespace hearth::mcp {

/// Tool calls that wait for a sandbox, none of which holds a thread. Each becomes a PendingCall
/// that first waits and then represents the started execution or the result.
///
/// A call leaves the claims' line when its caller cancels it, or when its PendingCall is dropped
/// because the client is gone. Anything it made is ended, except an execution whose client is gone.
/// Thread-safe. The destructor cancels waiting calls.
class ClaimWaiters {
public:
    /// `clock` and everything that the calls use must outlive this object.
    explicit ClaimWaiters(const Clock& clock) : clock_(clock), executor_(clock, 4, "mcp-claims") {}

    /// Begins the claim of a tenant's call and returns what the call has become. Throws what ends
    /// the claim at once, Error(RateLimited) if the tenant has as many waiting calls as it may
    /// have, Error(Unavailable) if all tenants together have.
    ToolOutcome call(const std::string& tenant, ClaimingCall call);

    /// The most waiting calls, in total and of one tenant (TenantPlaces).
    static constexpr std::size_t kMost = 256;
    static constexpr std::size_t kMostOfTenant = 64;

private:
    class Wait;
    class WaitWork;

    std::shared_ptr<void> placeFor(const std::string& tenant, const std::string& what_for);

    const Clock& clock_;
    TenantPlaces places_{kMost, kMostOfTenant};
    Executor executor_;  ///< last: its end ends the calls
};

}  // namespace hearth::mcp
