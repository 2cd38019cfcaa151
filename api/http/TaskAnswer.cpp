#include "api/http/TaskAnswer.h"

#include <chrono>
#include <memory>
#include <utility>

#include "base/Error.h"

namespace hearth::api {
namespace {

constexpr std::chrono::seconds kTryAgain{5};

/// An answer on its way. The suspension's functions own it.
struct Answer : std::enable_shared_from_this<Answer> {
    Answer(const Request& asked, Task<Response> work,
           std::function<std::optional<Response>()> instead)
        : request(asked), task(std::move(work)), early(std::move(instead)) {}

    Response go() {
        if (task.run()) return task.result();
        Suspension suspension;
        // The task alone holds what it waits for: to let go of that may leave a line.
        suspension.subscribe = [self = shared_from_this()](std::function<void()> wake) {
            return self->task.wait()->subscribe(std::move(wake));
        };
        suspension.ready = [self = shared_from_this()] {
            return self->task.ended() || self->task.wait()->ready();
        };
        suspension.until = task.wait()->until();
        suspension.resume = [self = shared_from_this()] { return self->resume(); };
        suspension.give_up = [self = shared_from_this()] { return self->giveUp(); };
        Response response;
        response.body = std::move(suspension);
        return response;
    }

    Response resume() {
        if (request.clientGone()) throw Error(ErrorCode::Unavailable, "the client has gone");
        if (!request.stopToken().stop_requested() || task.wait()->ready()) return go();
        if (std::optional<Response> response = early ? early() : std::nullopt) return *response;
        throw Error(ErrorCode::Unavailable, "the server is shutting down").retryAfter(kTryAgain);
    }

    Response giveUp() const {
        if (std::optional<Response> response = early ? early() : std::nullopt) return *response;
        throw Error(ErrorCode::RateLimited, "too many requests wait on this server")
            .hint("wait until some of them are answered")
            .retryAfter(kTryAgain);
    }

    const Request& request;
    Task<Response> task;
    const std::function<std::optional<Response>()> early;
};

}  // namespace

Response answerOf(const Request& request, Task<Response> task,
                  std::function<std::optional<Response>()> early) {
    return std::make_shared<Answer>(request, std::move(task), std::move(early))->go();
}

}  // namespace hearth::api
