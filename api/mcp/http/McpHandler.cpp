#include "api/mcp/http/McpHandler.h"

#include <algorithm>
#include <utility>

#include "base/http/Url.h"

namespace hearth::mcp {
namespace {

constexpr const char* kJsonType = "application/json";
constexpr const char* kSessionHeader = "Mcp-Session-Id";

api::Response plain(int status, std::string body = {}) {
    api::Response response;
    response.status = status;
    response.route = "/mcp";
    if (!body.empty()) response.headers.emplace_back("Content-Type", kJsonType);
    response.body = std::move(body);
    return response;
}

api::Response refused(int status, const Json& id, int code, const std::string& message,
                      Json data = {}) {
    return plain(status, dumpJson(errorMessage(id, {code, message, std::move(data)})));
}

api::Response jsonOrEvents(const std::string& body, const std::string& events, bool as_events) {
    api::Response response = plain(200, as_events ? events : body);
    if (as_events) {
        response.headers = {{"Content-Type", "text/event-stream"},
                            {"Cache-Control", "no-cache, no-transform"},
                            {"X-Accel-Buffering", "no"}};
    }
    return response;
}

std::string mediaType(std::string_view value) {
    return toLower(trim(value.substr(0, value.find(';'))));
}

Json firstId(const Classified& classified) {
    return classified.batch || classified.messages.empty() ? Json() : classified.messages[0].id;
}

}  // namespace

McpHandler::McpHandler(const controller::Services& services,
                       const auth::Authenticator& authenticator, const auth::WorkerShares& shares,
                       McpOptions options)
    : services_(services),
      authenticator_(authenticator),
      shares_(shares),
      options_(options),
      sessions_(services.secret_key, services.clock),
      server_(services),
      slow_calls_(std::make_shared<SlowCalls>(services.clock)) {}

api::Response McpHandler::handle(api::Request& request) {
    if (request.method() == "POST") return post(request);
    if (request.method() == "DELETE") return endSession(request);
    api::Response response =
        refused(405, {}, rpc::kTransport, "Method not allowed: there is no stream to GET here");
    response.headers.emplace_back("Allow", "POST, DELETE");
    return response;
}

McpHandler::Accepts McpHandler::accepted(const api::Request& request) {
    const std::optional<std::string> header = request.header("Accept");
    if (!header || trim(*header).empty()) return Accepts::Json;
    bool json = false;
    bool events = false;
    std::string_view rest = *header;
    while (!rest.empty()) {
        const std::size_t comma = rest.find(',');
        const std::string type = mediaType(rest.substr(0, comma));
        rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
        json = json || type == kJsonType || type == "application/*" || type == "*/*";
        events = events || type == "text/event-stream" || type == "text/*" || type == "*/*";
    }
    if (json) return events ? Accepts::Both : Accepts::Json;
    return events ? Accepts::EventsOnly : Accepts::Neither;
}

api::Response McpHandler::post(api::Request& request) {
    const controller::Principal who = authenticator_.authenticate(request);
    if (mediaType(request.header("Content-Type").value_or("")) != kJsonType) {
        return refused(415, {}, rpc::kTransport, "Content-Type must be application/json");
    }
    const Accepts accepts = accepted(request);
    if (accepts == Accepts::Neither) {
        return refused(406, {}, rpc::kTransport,
                       "Accept must allow application/json or text/event-stream");
    }
    Json body;
    try {
        JsonLimits limits;
        limits.bytes = options_.max_body;
        body = parseJson(request.readBody(options_.max_body), limits);
    } catch (const Error& error) {
        if (error.code() == ErrorCode::PayloadTooLarge) {
            return refused(
                413, {}, rpc::kTransport,
                "The message is larger than " + std::to_string(options_.max_body) + " bytes");
        }
        if (error.code() != ErrorCode::InvalidArgument) throw;
        return refused(400, {}, rpc::kParseError, std::string("Parse error: ") + error.what());
    }
    const Classified classified = classify(body, request.header("MCP-Protocol-Version"));
    switch (classified.kind) {
        case Classified::Kind::Refused:
            return refused(classified.status, classified.id, classified.error.code,
                           classified.error.message, classified.error.data);
        case Classified::Kind::Dropped:
            return plain(202);
        case Classified::Kind::Modern:
            return modern(classified);
        case Classified::Kind::Legacy:
            break;
    }
    std::shared_ptr<void> ticket = shares_.take(who.tenant);
    api::Response response = legacy(request, who, classified, accepts);
    response.ticket = std::move(ticket);
    return response;
}

api::Response McpHandler::modern(const Classified& classified) {
    // No modern revision is served yet, so the list holds those that are: a client that
    // negotiates finds none of its own in it and opens with initialize.
    services_.metrics.mcp("other", "", "error");
    return refused(400, classified.messages.front().id, rpc::kUnsupportedVersion,
                   "Unsupported protocol version: " + classified.version,
                   {{"supported", kLegacyVersions}, {"requested", classified.version}});
}

api::Response McpHandler::legacy(api::Request& request, const controller::Principal& who,
                                 const Classified& classified, Accepts accepts) {
    const Message& first = classified.messages.front();
    if (!classified.batch && first.kind == MessageKind::Request && first.method == "initialize") {
        return initialize(who, first, accepts);
    }
    const std::optional<std::string> session = request.header(kSessionHeader);
    if (!session) {
        return refused(400, firstId(classified), rpc::kTransport,
                       "Bad request: the Mcp-Session-Id header is missing; initialize first");
    }
    const std::optional<std::string_view> issued_for = sessions_.check(*session, who.tenant);
    if (!issued_for) {
        return refused(404, firstId(classified), rpc::kSessionNotFound, "Session not found");
    }
    const std::string version(
        trim(request.header("MCP-Protocol-Version").value_or(std::string(*issued_for))));
    if (!isLegacyVersion(version)) {
        return refused(400, firstId(classified), rpc::kTransport,
                       "Bad request: unsupported MCP-Protocol-Version");
    }
    if (classified.batch && *issued_for != kBatchVersion) {
        return refused(400, {}, rpc::kInvalidRequest,
                       "Batches exist in protocol version 2025-03-26 only");
    }
    const std::string host = request.header("Host").value_or("");
    const Caller caller{who,          *session,
                        version,      request.startedAt(),
                        request.id(), host.empty() ? "" : "http://" + host};
    Answers answers;
    answers.batch = classified.batch;
    for (const Message& message : classified.messages) {
        Server::Reply reply = server_.handle(caller, message);
        if (auto* done = std::get_if<Json>(&reply)) answers.done.push_back(std::move(*done));
        if (auto* slow = std::get_if<SlowCall>(&reply)) answers.slow.push_back(std::move(*slow));
    }
    if (answers.done.empty() && answers.slow.empty()) return plain(202);
    return answer(request, std::move(answers), accepts);
}

api::Response McpHandler::initialize(const controller::Principal& who, const Message& message,
                                     Accepts accepts) {
    std::string version;
    const Json reply = server_.initialize(message, version);
    api::Response response =
        jsonOrEvents(dumpJson(reply), sseEvent(reply), accepts == Accepts::EventsOnly);
    if (!version.empty()) {
        response.headers.emplace_back(kSessionHeader, sessions_.issue(who.tenant, version));
    }
    return response;
}

void McpHandler::waitInline(Answers& answers) {
    const TimePoint deadline = services_.clock.now() + options_.inline_wait;
    for (auto it = answers.slow.begin(); it != answers.slow.end();) {
        std::optional<Json> settled = Server::settle(*it, services_.clock, deadline);
        if (!settled) {
            ++it;
            continue;
        }
        if (!settled->is_null()) answers.done.push_back(std::move(*settled));
        it = answers.slow.erase(it);
    }
}

api::Response McpHandler::later(api::Request& request, Answers answers) {
    const auto held = std::make_shared<Answers>(std::move(answers));
    api::Suspension suspension;
    suspension.subscribe = [held](const std::function<void()>& wake) {
        auto subscriptions = std::make_shared<std::vector<std::shared_ptr<void>>>();
        for (const SlowCall& slow : held->slow) {
            subscriptions->push_back(slow.pending.execution->subscribe(wake));
            slow.call->onCancel([wake, cancel = slow.pending.cancel] {
                cancel();
                wake();
            });
        }
        return subscriptions;
    };
    suspension.ready = [held, &clock = services_.clock] {
        return std::all_of(held->slow.begin(), held->slow.end(), [&](const SlowCall& slow) {
            return slow.call->cancelled() || slow.pending.ready(clock.now());
        });
    };
    for (const SlowCall& slow : held->slow) {
        if (slow.pending.until) {
            suspension.until = std::min(suspension.until, *slow.pending.until);
        }
    }
    suspension.resume = [this, held, &request] {
        return answer(request, std::move(*held), Accepts::Json);
    };
    api::Response response;
    response.body = std::move(suspension);
    return response;
}

api::Response McpHandler::answer(api::Request& request, Answers answers, Accepts accepts) {
    waitInline(answers);
    if (!answers.slow.empty() && accepts != Accepts::Json) {
        return stream(request, std::move(answers));
    }
    if (!answers.slow.empty() && !request.stopToken().stop_requested()) {
        return later(request, std::move(answers));
    }
    for (const SlowCall& slow : answers.slow) answers.done.push_back(slow.answer());
    // A cancelled call gets no message at all: an event stream can say nothing, JSON cannot.
    const bool as_events = accepts == Accepts::EventsOnly || answers.done.empty();
    std::string events;
    for (const Json& message : answers.done) events += sseEvent(message);
    const std::string body = answers.batch          ? dumpJson(Json(answers.done))
                             : answers.done.empty() ? std::string()
                                                    : dumpJson(answers.done.front());
    return jsonOrEvents(body, events, as_events);
}

api::Response McpHandler::stream(api::Request& request, Answers answers) {
    if (slow_calls_->count() + answers.slow.size() > options_.max_slow_calls) {
        throw Error(ErrorCode::Unavailable, "too many calls are being waited for")
            .hint("Start the run with background=true and ask run_status");
    }
    std::string ready;
    for (const Json& message : answers.done) ready += sseEvent(message);
    api::Response response = jsonOrEvents({}, {}, true);
    response.keepalive = ": keepalive\n\n";
    response.body = api::StreamStarter([slow_calls = slow_calls_, stop = request.stopToken(), ready,
                                        slow = std::make_shared<std::vector<SlowCall>>(std::move(
                                            answers.slow))](std::shared_ptr<api::Stream> stream) {
        if (!ready.empty()) stream->send(ready);
        slow_calls->follow(std::move(stream), std::move(*slow), stop);
    });
    return response;
}

api::Response McpHandler::endSession(api::Request& request) {
    const controller::Principal who = authenticator_.authenticate(request);
    const std::optional<std::string> session = request.header(kSessionHeader);
    if (!session) {
        return refused(400, {}, rpc::kTransport,
                       "Bad request: the Mcp-Session-Id header is missing");
    }
    if (!sessions_.check(*session, who.tenant)) {
        return refused(404, {}, rpc::kSessionNotFound, "Session not found");
    }
    sessions_.revoke(*session);
    return plain(204);
}

}  // namespace hearth::mcp
