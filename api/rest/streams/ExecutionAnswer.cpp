#include "api/rest/streams/ExecutionAnswer.h"

#include <algorithm>
#include <chrono>

#include "controller/contract/ExecutionWait.h"

namespace hearth::rest {
namespace {

constexpr std::chrono::milliseconds kWaitInWorker{300};

}  // namespace

// NOLINTBEGIN(performance-unnecessary-value-param): the frame keeps them
Task<api::Response> whenFinished(const Clock& clock,
                                 std::shared_ptr<controller::Execution> execution, TimePoint until,
                                 std::function<api::Response()> make) {
    // NOLINTEND(performance-unnecessary-value-param)
    const TimePoint now = clock.now();
    const auto moment =
        std::chrono::ceil<std::chrono::milliseconds>(std::min(until, now + kWaitInWorker) - now);
    if (!execution->wait(std::max(moment, std::chrono::milliseconds(0)))) {
        auto end = std::make_shared<controller::ExecutionWait>(execution, until);
        if (clock.now() < until) co_await end;
    }
    execution->requireAnswer();
    co_return make();
}

}  // namespace hearth::rest
