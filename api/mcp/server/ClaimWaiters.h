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
/// worker. Each becomes a PendingCall that first waits and then represents the started execution or
/// the result. No thread is held while the execution runs.
///
/// A call leaves the claims' line at once when its caller cancels it, or when its PendingCall is
/// dropped because the client is gone. Anything it made is ended, except an execution whose client
/// is gone. Thread-safe. The destructor cancels waiting calls and joins the threads.
class ClaimWaiters {
public:
    /// `clock` and everything that the calls use must outlive this object.
    explicit ClaimWaiters(const Clock& clock) : clock_(clock) {}
    ClaimWaiters(const ClaimWaiters&) = delete;
    ClaimWaiters& operator=(const ClaimWaiters&) = delete;
    ~ClaimWaiters();

    /// A tool's handler with its arguments. It claims with the context's patience before it does
    /// anything visible, because it may be called twice. It owns everything it needs.
    using Handler = std::function<ToolOutcome(const CallContext&)>;
    /// Calls the handler; if it would have to wait, calls it once more in a thread. Throws what the
    /// handler throws, Error(RateLimited) if all threads of the tenant are taken,
    /// Error(Unavailable) if all threads are taken.
    ToolOutcome call(CallContext context, const Handler& handler);

    /// The most waiting calls, in total and of one tenant (TenantPlaces).
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
