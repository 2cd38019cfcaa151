#include "api/rest/streams/Suspensions.h"

#include <algorithm>

#include "base/Error.h"
#include "controller/claims/ClaimWait.h"

namespace hearth::rest {
namespace {

constexpr std::chrono::milliseconds kWaitInWorker{300};

using Claim = std::function<api::Response(const controller::ClaimPatience&)>;

api::Response claimOn(api::Request& request, const Claim& claim,
                      const std::shared_ptr<controller::ClaimWait>& wait) {
    controller::ClaimPatience patience;
    patience.waits = false;
    patience.wait = wait;
    try {
        return claim(patience);
    } catch (const controller::MustWait&) {
        if (request.stopToken().stop_requested()) {
            throw Error(ErrorCode::Unavailable, "the server is shutting down")
                .retryAfter(std::chrono::seconds(5));
        }
    }
    api::Suspension suspension;
    suspension.subscribe = [wait](std::function<void()> wake) {
        return wait->subscribe(std::move(wake));
    };
    suspension.ready = [wait] { return wait->due(); };
    suspension.until = wait->until();
    suspension.resume = [&request, claim, wait] {
        if (request.clientGone()) throw controller::takenBack();
        return claimOn(request, claim, wait);
    };
    suspension.give_up = []() -> api::Response {
        throw Error(ErrorCode::RateLimited, "too many requests wait on this server")
            .hint("wait until some of them are answered")
            .retryAfter(std::chrono::seconds(5));
    };
    api::Response response;
    response.body = std::move(suspension);
    return response;
}

}  // namespace

api::Response whenFinished(const Clock& clock,
                           const std::shared_ptr<controller::Execution>& execution, TimePoint until,
                           const std::function<api::Response()>& make) {
    const TimePoint now = clock.now();
    const TimePoint moment = std::min(until, now + kWaitInWorker);
    const auto patience = std::chrono::ceil<std::chrono::milliseconds>(moment - now);
    const auto answer = [execution, make] {
        execution->requireAnswer();
        return make();
    };
    if (execution->wait(std::max(patience, std::chrono::milliseconds(0))) ||
        execution->unanswered() || clock.now() >= until) {
        return answer();
    }
    api::Suspension suspension;
    suspension.subscribe = [execution](std::function<void()> wake) {
        return execution->subscribe(std::move(wake));
    };
    suspension.ready = [execution] { return execution->finished() || execution->unanswered(); };
    suspension.until = until;
    suspension.resume = answer;
    suspension.give_up = make;  // the execution continues, and the client can ask for it
    api::Response response;
    response.body = std::move(suspension);
    return response;
}

api::Response whenClaimed(api::Request& request, const Claim& claim) {
    return claimOn(request, claim, std::make_shared<controller::ClaimWait>());
}

}  // namespace hearth::rest
