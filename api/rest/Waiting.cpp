#include "api/rest/Waiting.h"

#include <algorithm>

namespace hearth::rest {
namespace {

constexpr std::chrono::milliseconds kWaitInWorker{300};

}  // namespace

api::Response whenFinished(const Clock& clock,
                           const std::shared_ptr<controller::Execution>& execution, TimePoint until,
                           const std::function<api::Response()>& make) {
    const TimePoint now = clock.now();
    const TimePoint moment = std::min(until, now + kWaitInWorker);
    const auto patience = std::chrono::ceil<std::chrono::milliseconds>(moment - now);
    if (execution->wait(std::max(patience, std::chrono::milliseconds(0))) || clock.now() >= until) {
        return make();
    }
    api::Suspension suspension;
    suspension.subscribe = [execution](std::function<void()> wake) {
        return execution->subscribe(std::move(wake));
    };
    suspension.ready = [execution] { return execution->finished(); };
    suspension.until = until;
    suspension.resume = make;
    api::Response response;
    response.body = std::move(suspension);
    return response;
}

}  // namespace hearth::rest
