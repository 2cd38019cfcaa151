#include "api/http/TaskAnswer.h"

#include <chrono>
#include <memory>
#include <utility>

#include "base/Error.h"

namespace hearth::api {
namespace {

constexpr std::chrono::seconds kTryAgain{5};

using EarlyAnswer = std::function<std::optional<Response>()>;

/// A request whose task is on its way. The suspension's functions own it.
class Journey : public std::enable_shared_from_this<Journey> {
public:
    Journey(const Request& request, Task<Response> task, EarlyAnswer early)
        : request_(request), task_(std::move(task)), early_(std::move(early)) {}

    Response go() {
        if (task_.run()) return task_.result();
        Suspension suspension;
        // The task alone holds what it waits for: to let go of that may leave a line.
        suspension.subscribe = [self = shared_from_this()](std::function<void()> wake) {
            return self->task_.wait()->subscribe(std::move(wake));
        };
        suspension.ready = [self = shared_from_this()] {
            return self->task_.ended() || self->task_.wait()->ready();
        };
        suspension.until = task_.wait()->until();
        suspension.resume = [self = shared_from_this()] { return self->resume(); };
        suspension.give_up = [self = shared_from_this()] {
            return self->earlyOr(
                Error(ErrorCode::RateLimited, "too many requests wait on this server")
                    .hint("wait until some of them are answered"));
        };
        Response response;
        response.body = std::move(suspension);
        return response;
    }

private:
    Response resume() {
        if (request_.clientGone()) throw Error(ErrorCode::Unavailable, "the client has gone");
        if (!request_.stopToken().stop_requested() || task_.wait()->ready()) return go();
        return earlyOr(Error(ErrorCode::Unavailable, "the server is shutting down"));
    }

    Response earlyOr(Error refusal) const {
        std::optional<Response> response = early_ ? early_() : std::nullopt;
        if (!response) throw refusal.retryAfter(kTryAgain);
        return *std::move(response);
    }

    const Request& request_;
    Task<Response> task_;
    const EarlyAnswer early_;
};

}  // namespace

Response answerOf(const Request& request, Task<Response> task,
                  std::function<std::optional<Response>()> early) {
    return std::make_shared<Journey>(request, std::move(task), std::move(early))->go();
}

}  // namespace hearth::api
