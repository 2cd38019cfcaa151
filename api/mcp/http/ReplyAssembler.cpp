#include "api/mcp/http/ReplyAssembler.h"

#include <algorithm>
#include <utility>

#include "api/http/RequestFacts.h"

namespace hearth::mcp {
namespace {

constexpr const char* kJsonType = "application/json";
/// The most bytes of all answers to a batch; each answer may be almost 1 MB.
constexpr std::size_t kMostOfBatch = 4U << 20U;

Json idOf(const Json& reply) {
    const Json* id = member(reply, "id");
    return id == nullptr ? Json() : *id;
}

}  // namespace

api::Response mcpAnswer(int status, std::string body) {
    api::Response response;
    response.status = status;
    response.route = "/mcp";
    if (!body.empty()) response.headers.add("Content-Type", kJsonType);
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
    const std::vector<Poco::Net::MediaType> types = api::acceptedTypes(request);
    if (types.empty()) return Accepts::Json;
    bool json = false;
    bool events = false;
    for (const Poco::Net::MediaType& type : types) {
        json = json || type.matchesRange("application", "json");
        events = events || type.matchesRange("text", "event-stream");
    }
    if (json) return events ? Accepts::Both : Accepts::Json;
    return events ? Accepts::EventsOnly : Accepts::Neither;
}

void ReplyAssembler::add(McpServer::Reply reply) {
    if (auto* done = std::get_if<Json>(&reply)) keep(std::move(*done));
    if (auto* slow = std::get_if<PendingToolCall>(&reply)) {
        slow_.push_back(std::move(*slow));
    }
    if (auto* live = std::get_if<LiveReply>(&reply)) live_.push_back(std::move(*live));
}

void ReplyAssembler::keep(Json done) {
    if (batch_) {
        const std::size_t size = dumpJson(done).size();
        if (batch_bytes_ + size > kMostOfBatch) {
            done = errorMessage(
                idOf(done),
                {rpc::kTransport,
                 "the answers to this batch are too long together: call this one again, by itself",
                 {}});
        } else {
            batch_bytes_ += size;
        }
    }
    done_.push_back(std::move(done));
}

void ReplyAssembler::waitInline() {
    const Clock& clock = context_.services.clock;
    const TimePoint deadline = clock.now() + context_.options.inline_wait;
    for (auto it = slow_.begin(); it != slow_.end();) {
        std::optional<Json> settled = McpServer::settle(*it, clock, deadline);
        if (!settled) {
            ++it;
            continue;
        }
        if (!settled->is_null()) keep(std::move(*settled));
        it = slow_.erase(it);
    }
}

api::Response ReplyAssembler::answer(api::Request& request, Accepts accepts) && {
    if (!live_.empty()) return std::move(*this).stream(request);
    waitInline();
    if (!slow_.empty() && accepts != Accepts::Json) return std::move(*this).stream(request);
    if (!slow_.empty() && !request.stopToken().stop_requested()) {
        return std::move(*this).later(request);
    }
    for (const PendingToolCall& slow : slow_) keep(slow.answer());
    return whole(accepts);
}

int ReplyAssembler::status() const {
    if (!modern_ || done_.size() != 1) return 200;
    const Json* error = member(done_.front(), "error");
    const Json* code = error == nullptr ? nullptr : member(*error, "code");
    if (code == nullptr) return 200;
    if (*code == rpc::kMethodNotFound) return 404;
    return *code == rpc::kMissingCapability ? 400 : 200;
}

api::Response ReplyAssembler::whole(Accepts accepts) const {
    // A cancelled call gets no message at all: an event stream can be empty, JSON cannot.
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

api::Response ReplyAssembler::later(api::Request& request) && {
    const auto held = std::make_shared<ReplyAssembler>(std::move(*this));
    const Clock& clock = held->context_.services.clock;
    api::Suspension suspension;
    suspension.subscribe = [held](const std::function<void()>& wake) {
        auto subscriptions = std::make_shared<std::vector<std::shared_ptr<void>>>();
        for (const PendingToolCall& slow : held->slow_) {
            subscriptions->push_back(slow.pending.work->subscribe(wake));
            slow.call->onCancel([wake, cancel = slow.pending.cancel] {
                cancel();
                wake();
            });
        }
        return subscriptions;
    };
    suspension.ready = [held, &clock] {
        return std::all_of(held->slow_.begin(), held->slow_.end(),
                           [&](const PendingToolCall& slow) {
                               return slow.call->cancelled() || slow.pending.ready(clock.now());
                           });
    };
    for (const PendingToolCall& slow : held->slow_) {
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

api::Response ReplyAssembler::stream(api::Request& request) && {
    const auto held = std::make_shared<ReplyAssembler>(std::move(*this));
    api::Response response = eventAnswer();
    response.body = api::StreamStarter(
        [held, slow_calls = held->context_.slow_calls, live_calls = held->context_.live_calls,
         stop = request.stopToken()](std::shared_ptr<api::Stream> stream) {
            const bool resumable = !held->modern_ && held->version_ >= kFirstResumable;
            const std::shared_ptr<MessageSink> sink =
                resumable
                    ? held->context_.replays.open(held->tenant_, held->session_, std::move(stream),
                                                  held->version_ >= kFirstPriming)
                    : std::make_shared<StreamSink>(std::move(stream));
            for (const Json& message : held->done_) sink->send(message);
            for (LiveReply& live : held->live_) {
                live_calls->start(std::move(live), held->session_, sink);
            }
            slow_calls->follow(sink, std::move(held->slow_), stop,
                               held->modern_ ? PendingToolCalls::HangUp::Cancels
                                             : PendingToolCalls::HangUp::LeavesRunning);
        });
    return response;
}

}  // namespace hearth::mcp
