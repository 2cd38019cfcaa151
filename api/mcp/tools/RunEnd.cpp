#include "api/mcp/tools/RunEnd.h"

#include <functional>
#include <utility>
#include <vector>

#include "controller/contract/ExecutionWait.h"

namespace hearth::mcp {

// NOLINTBEGIN(performance-unnecessary-value-param): the frame keeps them
Task<> untilEnd(const controller::Services& services, CallContext call,
                std::shared_ptr<controller::Execution> execution, OnCancel on_cancel,
                TimePoint until) {
    // NOLINTEND(performance-unnecessary-value-param)
    std::function<void()> kill;
    if (on_cancel == OnCancel::Kills) {
        kill = [&services, who = call.who, id = execution->id()] {
            services.executions.kill(who, id);
        };
    }
    call.call->runs(execution, services.clock.now(), std::move(kill));
    auto end = std::make_shared<controller::ExecutionWait>(execution, until);
    auto first = std::make_shared<FirstOf>(
        std::vector<WaitablePtr>{end, call.call->refused(), call.call->serverStop()});
    if (!first->over(services.clock)) co_await first;
    call.call->requireBegun();
}

}  // namespace hearth::mcp
