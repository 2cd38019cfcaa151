#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/mcp/protocol/CallContext.h"
#include "api/mcp/tools/Toolbox.h"
#include "base/Clock.h"
#include "base/Mutex.h"
#include "base/tenants/TenantPlaces.h"

namespace hearth::mcp {

/// Tool calls that wait for a sandbox, each in a thread of its own, so that none of them holds a
/// worker. Each becomes a PendingCall: first it waits, then it stands for the started execution, or
/// the result. No thread is held while the execution runs.
///
/// A caller that cancels leaves the claims' line at once, as does a call whose PendingCall is
/// dropped because its client is gone; what it had made is ended. Thread-safe. The destructor
/// cancels waiting calls and joins the threads.
class ClaimWaiters {
public:
    /// `clock` outlives it, as does whatever the calls use.
    explicit ClaimWaiters(const Clock& clock) : clock_(clock) {}
    ClaimWaiters(const ClaimWaiters&) = delete;
    ClaimWaiters& operator=(const ClaimWaiters&) = delete;
    ~ClaimWaiters();

    /// A tool's handler with its arguments. It claims as the context's patience says, before it
    /// does anything else that would show, and owns what it needs.
    using Handler = std::function<ToolOutcome(const CallContext&)>;
    /// Calls it, and once more in a thread where it would have to wait. Throws what the handler
    /// throws, Error(RateLimited) where all threads of the tenant are taken, Error(Unavailable)
    /// where all are.
    ToolOutcome call(CallContext context, const Handler& handler);

    /// Altogether, and of one tenant (TenantPlaces).
    static constexpr std::size_t kMost = 256;
    static constexpr std::size_t kMostOfTenant = 64;

private:
    class Wait;
    class WaitWork;
    struct Running {
        std::shared_ptr<void> place;
        std::shared_ptr<Wait> wait;
        std::shared_ptr<std::atomic<bool>> done;
        std::jthread thread;
    };

    PendingCall begin(const CallContext& context, const Handler& handler,
                      const std::string& what_for);

    const Clock& clock_;
    TenantPlaces places_{kMost, kMostOfTenant};
    Mutex mutex_;
    std::vector<Running> running_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::mcp
