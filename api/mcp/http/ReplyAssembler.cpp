#include "api/mcp/http/ReplyAssembler.h"

#include <algorithm>
#include <utility>

#include "api/http/RequestFacts.h"
#include "api/http/TaskAnswer.h"
#include "api/mcp/http/Admission.h"

namespace hearth::mcp {
namespace {

constexpr const char* kJsonType = "application/json";
/// The most bytes of all answers to a batch; each answer may be almost 1 MB.
constexpr std::size_t kMostOfBatch = 4U << 20U;

/// How often a call that is attended is checked for a cancel.
constexpr std::chrono::milliseconds kCancelLook{100};

/// Lets the worker wait for the end of a call's execution.
void attendUntil(Call& call, const Clock& clock, TimePoint until) {
    while (call.execution() && !call.execution()->finished() && !call.cancelled()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock.now());
        if (left.count() <= 0 || call.refused()->ready()) return;
        call.attend(std::min(left, kCancelLook));
    }
}

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
    if (auto* call = std::get_if<ToolCall>(&reply)) calls_.push_back(std::move(*call));
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
    for (ToolCall& call : calls_) {
        if (call.answer.ended()) continue;
        const auto left = std::min(deadline, call.answer.wait()->until()) - clock.now();
        const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(left);
        attendUntil(*call.call, clock, clock.now() + most);
        call.goOn(clock);
    }
    collect();
}

void ReplyAssembler::collect() {
    for (ToolCall& call : calls_) {
        if (!call.answer.ended()) continue;
        if (call.call->cancelled()) {
            context_.tool_calls.leave(call);
            continue;
        }
        keep(call.answer.result());
        call.tell();
    }
    std::erase_if(calls_, [](const ToolCall& call) { return call.answer.ended(); });
}

api::Response ReplyAssembler::answer(api::Request& request, Accepts accepts) && {
    const bool talks = std::any_of(calls_.begin(), calls_.end(),
                                   [](const ToolCall& call) { return call.call->wantsTalk(); });
    if (!talks) waitInline();
    if (calls_.empty()) return whole(accepts);
    if (talks || accepts != Accepts::Json) return std::move(*this).stream(request);
    return api::answerOf(request, whenAnswered(std::move(*this), request.stopToken()));
}

Task<api::Response> ReplyAssembler::whenAnswered(ReplyAssembler all, std::stop_token stop) {
    Task<std::vector<Json>> answering =
        all.context_.tool_calls.answers(std::move(all.calls_), std::move(stop));
    std::vector<Json> answers = co_await answering;
    for (Json& each : answers) {
        if (!each.is_null()) all.keep(std::move(each));
    }
    co_return all.whole(Accepts::Json);
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

api::Response ReplyAssembler::stream(api::Request& request) && {
    const auto held = std::make_shared<ReplyAssembler>(std::move(*this));
    api::Response response = eventAnswer();
    response.body =
        api::StreamStarter([held, stop = request.stopToken()](std::shared_ptr<api::Stream> stream) {
            McpContext& context = held->context_;
            const bool resumable = !held->modern_ && held->version_ >= kFirstResumable;
            const std::shared_ptr<MessageSink> sink =
                resumable ? context.replays.open(held->tenant_, held->session_, std::move(stream),
                                                 held->version_ >= kFirstPriming)
                          : std::make_shared<StreamSink>(std::move(stream));
            for (const Json& message : held->done_) sink->send(message);
            for (ToolCall& call : held->calls_) {
                followCall(context, std::move(call), sink, stop, held->session_);
            }
        });
    return response;
}

}  // namespace hearth::mcp
