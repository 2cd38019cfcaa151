#include "api/rest/streams/ClaimStreams.h"

#include <chrono>
#include <exception>
#include <utility>
#include <variant>

#include "api/http/Problem.h"
#include "api/rest/streams/Sse.h"
#include "base/Error.h"
#include "base/task/Together.h"

namespace hearth::rest {
namespace {

using ExecutionPtr = std::shared_ptr<controller::Execution>;

constexpr std::chrono::seconds kLookAgain{1};

Json progressJson(const Waitable::Progress& progress) {
    Json data{{"for", progress.what_for}};
    data["place"] = progress.place > 0 ? Json(progress.place) : Json();
    data["of"] = progress.place > 0 ? Json(progress.of) : Json();
    data["estimateSeconds"] = progress.estimate ? Json(progress.estimate->count()) : Json();
    return data;
}

/// Sends the place of a waiting claim, if it has changed and the client has read what came before.
class PlaceTeller {
public:
    explicit PlaceTeller(std::shared_ptr<api::Stream> stream) : stream_(std::move(stream)) {}

    void operator()(const Waitable& wait) {
        const auto progress = wait.progress();
        if (!progress || stream_->pending() > 0) return;
        std::string event = sseEvent("waiting", 0, progressJson(*progress));
        if (event != told_) stream_->send(event);
        told_ = std::move(event);
    }

private:
    std::shared_ptr<api::Stream> stream_;
    std::string told_;
};

void fail(api::Stream& stream, const api::ProblemContext& context, const Error& error) {
    const api::Response response = api::problem(error, context);
    stream.send(sseEvent("problem", 0, parseJson(std::get<std::string>(response.body))));
    stream.finish();
}

// NOLINTBEGIN(performance-unnecessary-value-param): the frame keeps them
Task<> follow(const Clock& clock, std::shared_ptr<api::Stream> stream, Task<ExecutionPtr> start,
              ClaimStreams::Begin begin, api::ProblemContext context) {
    // NOLINTEND(performance-unnecessary-value-param)
    // The top of this task: a failure is reported on its own stream.
    try {
        Task<ExecutionPtr> told = every(kLookAgain, clock, std::move(start), PlaceTeller(stream));
        const ExecutionPtr execution = co_await told;
        begin(execution, stream);
    } catch (const Error& e) {
        fail(*stream, context, e);
    } catch (const std::exception&) {
        fail(*stream, context,
             Error(ErrorCode::Internal, "the server failed to answer this request"));
    }
}

}  // namespace

api::Response ClaimStreams::answer(const api::Request& request, const std::string& tenant,
                                   Task<ExecutionPtr> start, Begin begin) {
    // The starter is a std::function, which is copied: it shares what it passes on once.
    struct Parts {
        Task<ExecutionPtr> start;
        Begin begin;
    };
    const auto parts = std::make_shared<Parts>(Parts{std::move(start), std::move(begin)});
    return sseResponse([this, tenant, parts, context = api::problemContext(request)](
                           const std::shared_ptr<api::Stream>& stream) {
        auto running = executor_.start(tenant, follow(clock_, stream, std::move(parts->start),
                                                      std::move(parts->begin), context));
        stream->onClosed([running = std::move(running)]() mutable { running.reset(); });
    });
}

}  // namespace hearth::rest
