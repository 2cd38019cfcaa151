#include "api/mcp/http/Answering.h"

#include <algorithm>
#include <utility>

#include "base/http/Url.h"

namespace hearth::mcp {
namespace {

constexpr const char* kJsonType = "application/json";

}  // namespace

api::Response mcpAnswer(int status, std::string body) {
    api::Response response;
    response.status = status;
    response.route = "/mcp";
    if (!body.empty()) response.headers.emplace_back("Content-Type", kJsonType);
    response.body = std::move(body);
    return response;
}

api::Response mcpRefusal(int status, const Json& id, int code, const std::string& message,
                         Json data) {
    return mcpAnswer(status, dumpJson(errorMessage(id, {code, message, std::move(data)})));
}

api::Response eventAnswer() {
    api::Response response = mcpAnswer(200);
    response.headers = {{"Content-Type", "text/event-stream"},
                        {"Cache-Control", "no-cache, no-transform"},
                        {"X-Accel-Buffering", "no"}};
    response.keepalive = ": keepalive\n\n";
    return response;
}

Accepts acceptedForms(const api::Request& request) {
    const std::optional<std::string> header = request.header("Accept");
    if (!header || trim(*header).empty()) return Accepts::Json;
    bool json = false;
    bool events = false;
    std::string_view rest = *header;
    while (!rest.empty()) {
        const std::size_t comma = rest.find(',');
        const std::string_view range = rest.substr(0, comma);
        const std::string type = toLower(trim(range.substr(0, range.find(';'))));
        rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
        json = json || type == kJsonType || type == "application/*" || type == "*/*";
        events = events || type == "text/event-stream" || type == "text/*" || type == "*/*";
    }
    if (json) return events ? Accepts::Both : Accepts::Json;
    return events ? Accepts::EventsOnly : Accepts::Neither;
}

void Answering::add(Server::Reply reply) {
    if (auto* done = std::get_if<Json>(&reply)) done_.push_back(std::move(*done));
    if (auto* slow = std::get_if<SlowCall>(&reply)) slow_.push_back(std::move(*slow));
    if (auto* live = std::get_if<LiveReply>(&reply)) live_.push_back(std::move(*live));
}

void Answering::waitInline() {
    const Clock& clock = hub_.services.clock;
    const TimePoint deadline = clock.now() + hub_.options.inline_wait;
    for (auto it = slow_.begin(); it != slow_.end();) {
        std::optional<Json> settled = Server::settle(*it, clock, deadline);
        if (!settled) {
            ++it;
            continue;
        }
        if (!settled->is_null()) done_.push_back(std::move(*settled));
        it = slow_.erase(it);
    }
}

api::Response Answering::answer(api::Request& request, Accepts accepts) && {
    if (!live_.empty()) return std::move(*this).stream(request);
    waitInline();
    if (!slow_.empty() && accepts != Accepts::Json) return std::move(*this).stream(request);
    if (!slow_.empty() && !request.stopToken().stop_requested()) {
        return std::move(*this).later(request);
    }
    for (const SlowCall& slow : slow_) done_.push_back(slow.answer());
    return whole(accepts);
}

int Answering::status() const {
    if (!modern_ || done_.size() != 1) return 200;
    const Json* error = member(done_.front(), "error");
    const Json* code = error == nullptr ? nullptr : member(*error, "code");
    if (code == nullptr) return 200;
    if (*code == rpc::kMethodNotFound) return 404;
    return *code == rpc::kMissingCapability ? 400 : 200;
}

api::Response Answering::whole(Accepts accepts) const {
    // A cancelled call gets no message at all: an event stream can say nothing, JSON cannot.
    if (accepts != Accepts::EventsOnly && !done_.empty()) {
        return mcpAnswer(status(), batch_ ? dumpJson(Json(done_)) : dumpJson(done_.front()));
    }
    std::string events;
    for (const Json& message : done_) events += sseEvent(message);
    api::Response response = eventAnswer();
    response.status = status();
    response.body = std::move(events);
    return response;
}

api::Response Answering::later(api::Request& request) && {
    const auto held = std::make_shared<Answering>(std::move(*this));
    const Clock& clock = held->hub_.services.clock;
    api::Suspension suspension;
    suspension.subscribe = [held](const std::function<void()>& wake) {
        auto subscriptions = std::make_shared<std::vector<std::shared_ptr<void>>>();
        for (const SlowCall& slow : held->slow_) {
            subscriptions->push_back(slow.pending.work->subscribe(wake));
            slow.call->onCancel([wake, cancel = slow.pending.cancel] {
                cancel();
                wake();
            });
        }
        return subscriptions;
    };
    suspension.ready = [held, &clock] {
        return std::all_of(held->slow_.begin(), held->slow_.end(), [&](const SlowCall& slow) {
            return slow.call->cancelled() || slow.pending.ready(clock.now());
        });
    };
    for (const SlowCall& slow : held->slow_) {
        if (slow.pending.until) {
            suspension.until = std::min(suspension.until, *slow.pending.until);
        }
    }
    suspension.resume = [held, &request] {
        return std::move(*held).answer(request, Accepts::Json);
    };
    api::Response response;
    response.body = std::move(suspension);
    return response;
}

api::Response Answering::stream(api::Request& request) && {
    const auto held = std::make_shared<Answering>(std::move(*this));
    api::Response response = eventAnswer();
    response.body = api::StreamStarter(
        [held, slow_calls = held->hub_.slow_calls, live_calls = held->hub_.live_calls,
         stop = request.stopToken()](std::shared_ptr<api::Stream> stream) {
            const bool resumable = !held->modern_ && held->version_ >= kFirstResumable;
            const std::shared_ptr<Outlet> outlet =
                resumable
                    ? held->hub_.replays.open(held->tenant_, held->session_, std::move(stream),
                                              held->version_ >= kFirstPriming)
                    : std::make_shared<StreamOutlet>(std::move(stream));
            for (const Json& message : held->done_) outlet->send(message);
            for (LiveReply& live : held->live_) {
                live_calls->start(std::move(live), held->session_, outlet);
            }
            slow_calls->follow(
                outlet, std::move(held->slow_), stop,
                held->modern_ ? SlowCalls::HangUp::Cancels : SlowCalls::HangUp::LeavesRunning);
        });
    return response;
}

}  // namespace hearth::mcp
