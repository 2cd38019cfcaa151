#include "api/mcp/http/McpHandler.h"

#include <utility>

#include "api/mcp/http/Admission.h"
#include "api/mcp/http/ModernHeaders.h"
#include "base/http/Url.h"

namespace hearth::mcp {
namespace {

constexpr const char* kSessionHeader = "Mcp-Session-Id";
constexpr std::size_t kLongestInstance = 64;

Json firstId(const Classified& classified) {
    return classified.batch || classified.messages.empty() ? Json() : classified.messages[0].id;
}

/// The owner of a session: another token of the tenant may not use it.
std::string ownerOf(const controller::Principal& who) {
    return who.tenant + '\n' + who.token_id;
}

bool flag(const Json& object, const std::string& name) {
    const Json* value = member(object, name);
    return value != nullptr && value->is_boolean() && value->get<bool>();
}

}  // namespace

api::Response McpHandler::handle(api::Request& request) {
    if (request.method() == "POST") return post(request);
    if (request.method() == "GET") return listen(request);
    if (request.method() == "DELETE") return endSession(request);
    api::Response response = mcpRefusal(405, {}, rpc::kTransport, "Method not allowed");
    response.headers.add("Allow", "GET, POST, DELETE");
    return response;
}

api::Response McpHandler::post(api::Request& request) {
    const controller::Principal who = admitted(context_, request, Counts::Call);
    const Accepts accepts = acceptedForms(request);
    if (accepts == Accepts::Neither) {
        return mcpRefusal(406, {}, rpc::kTransport,
                          "Accept must allow application/json or text/event-stream");
    }
    // Before the body is read, because a slow body holds a worker of its tenant's share.
    return context_.shares.answer(request, who.tenant, [this, &request, who, accepts] {
        return posted(request, who, accepts);
    });
}

api::Response McpHandler::posted(api::Request& request, const controller::Principal& who,
                                 Accepts accepts) {
    std::variant<Json, api::Response> json = postedJson(request, context_.options.max_body);
    if (auto* refusal = std::get_if<api::Response>(&json)) return std::move(*refusal);
    const Classified classified =
        classify(std::get<Json>(json), request.header("MCP-Protocol-Version"));
    if (classified.kind == Classified::Kind::Dropped) return mcpAnswer(202);
    if (classified.kind == Classified::Kind::Refused) {
        return mcpRefusal(classified.status, classified.id, classified.error.code,
                          classified.error.message, classified.error.data);
    }
    countFurther(context_, request, who, classified.messages.size());
    return classified.kind == Classified::Kind::Modern ? modern(request, who, classified, accepts)
                                                       : legacy(request, who, classified, accepts);
}

api::Response McpHandler::modern(api::Request& request, const controller::Principal& who,
                                 const Classified& classified, Accepts accepts) {
    const Message& message = classified.messages.front();
    if (!isModernVersion(classified.version)) {
        context_.services.metrics.mcp("other", "", "error");
        return mcpRefusal(400, message.id, rpc::kUnsupportedVersion,
                          "Unsupported protocol version: " + classified.version,
                          {{"supported", kModernVersions}, {"requested", classified.version}});
    }
    if (const auto wrong = headerMismatch(request, message, server_.catalog().tools)) {
        context_.services.metrics.mcp("other", "", "error");
        return mcpRefusal(400, message.id, rpc::kHeaderMismatch, "Header mismatch: " + *wrong);
    }
    const Json& meta = message.params["_meta"];
    Caller caller = callerOf(request, who);
    caller.version = classified.version;
    caller.context.modern = true;
    // Separates the data that one principal's programs keep; grants no rights.
    caller.context.session =
        request.header(kInstanceHeader).value_or("").substr(0, kLongestInstance);
    caller.context.client_capabilities = meta[envelope::kCapabilities];
    if (const auto level = stringMember(meta, envelope::kLogLevel)) {
        caller.log_severity = logSeverity(*level);
    }
    if (message.method == "subscriptions/listen") return subscriptions(request, caller, message);
    ReplyAssembler answering(context_, who.tenant, "", classified.version, true);
    answering.add(handled(context_, server_, caller, message));
    return std::move(answering).answer(request, accepts);
}

api::Response McpHandler::subscriptions(api::Request& request, const Caller& caller,
                                        const Message& message) {
    const Json* wanted = member(message.params, "notifications");
    Json problem;
    if (wanted == nullptr || !wanted->is_object()) {
        problem =
            errorMessage(message.id, {rpc::kInvalidParams, "notifications must be an object", {}});
    }
    context_.services.metrics.mcp(message.method, "", problem.is_null() ? "ok" : "error");
    if (!problem.is_null()) return mcpAnswer(200, dumpJson(problem));

    const Catalog& catalog = server_.catalog();
    ChangeNotifier::Listener listener{caller.context.who, {}};
    listener.subscription = message.id;
    Interest& interest = listener.interest;
    interest.tools = catalog.tools_change && flag(*wanted, "toolsListChanged");
    interest.prompts = catalog.prompts_change && flag(*wanted, "promptsListChanged");
    interest.resources = catalog.resources && flag(*wanted, "resourcesListChanged");
    if (const Json* uris = member(*wanted, "resourceSubscriptions");
        uris != nullptr && uris->is_array() && catalog.resources) {
        for (const Json& uri : *uris) {
            if (uri.is_string()) noteWanted(caller.context, uri.get<std::string>(), listener);
        }
    }
    Json honoured = Json::object();
    if (interest.tools) honoured["toolsListChanged"] = true;
    if (interest.prompts) honoured["promptsListChanged"] = true;
    if (interest.resources) honoured["resourcesListChanged"] = true;
    if (!interest.uris.empty()) honoured["resourceSubscriptions"] = interest.uris;
    const bool nothing = honoured.empty();
    const Json named = {{envelope::kSubscription, message.id}};
    const Json acknowledged =
        notificationMessage("notifications/subscriptions/acknowledged",
                            {{"notifications", std::move(honoured)}, {"_meta", named}});
    Json last = {{"_meta", named}};
    server_.seal(last);
    listener.farewell = resultMessage(message.id, std::move(last));

    api::Response response = eventAnswer();
    if (nothing) {
        response.body = sseEvent(acknowledged) + sseEvent(listener.farewell);
        return response;
    }
    response.news = true;
    response.body = api::StreamStarter([&notifier = context_.notifier, stop = request.stopToken(),
                                        first = sseEvent(acknowledged),
                                        listener = listener](std::shared_ptr<api::Stream> stream) {
        stream->send(first);
        notifier.follow(std::move(stream), listener, stop);
    });
    return response;
}

void McpHandler::noteWanted(const CallContext& context, const std::string& uri,
                            ChangeNotifier::Listener& listener) {
    std::set<std::string>& uris = listener.interest.uris;
    if (uris.size() >= ChangeNotifier::kMaxUris || !server_.willTell(context, uri)) return;
    std::optional<std::shared_ptr<void>> watched = context_.notifier.watch(context.who, uri);
    if (!watched) return;
    uris.insert(uri);
    if (*watched) listener.watches.push_back(std::move(*watched));
}

std::optional<McpHandler::Session> McpHandler::sessionOf(const api::Request& request,
                                                         const controller::Principal& who,
                                                         const Json& id,
                                                         api::Response& refusal) const {
    const std::optional<std::string> named = request.header(kSessionHeader);
    if (!named) {
        refusal = mcpRefusal(400, id, rpc::kTransport,
                             "Bad request: the Mcp-Session-Id header is missing; initialize first");
        return std::nullopt;
    }
    std::optional<SessionFacts> facts = context_.sessions.check(*named, ownerOf(who));
    if (!facts) {
        refusal = mcpRefusal(404, id, rpc::kSessionNotFound, "Session not found");
        return std::nullopt;
    }
    const std::string version(
        trim(request.header("MCP-Protocol-Version").value_or(std::string(facts->version))));
    if (!isLegacyVersion(version)) {
        refusal =
            mcpRefusal(400, id, rpc::kTransport, "Bad request: unsupported MCP-Protocol-Version");
        return std::nullopt;
    }
    return Session{*named, std::string(facts->version), std::move(facts->client_capabilities),
                   facts->expiry};
}

api::Response McpHandler::legacy(api::Request& request, const controller::Principal& who,
                                 const Classified& classified, Accepts accepts) {
    const Message& first = classified.messages.front();
    if (!classified.batch && first.kind == MessageKind::Request && first.method == "initialize") {
        return initialize(who, first, accepts);
    }
    api::Response refusal;
    const std::optional<Session> session = sessionOf(request, who, firstId(classified), refusal);
    if (!session) return refusal;
    if (classified.batch && session->version != kBatchVersion) {
        return mcpRefusal(400, {}, rpc::kInvalidRequest,
                          "Batches exist in protocol version 2025-03-26 only");
    }
    Caller caller = callerOf(request, who);
    caller.context.session = session->id;
    caller.context.client_capabilities = session->client_capabilities;
    caller.version = session->version;
    caller.calls_scope = session->id;
    caller.log_severity = context_.log_levels.of(session->id);
    ReplyAssembler answering(context_, who.tenant, session->id, session->version, false);
    if (classified.batch) answering.setBatch();
    for (const Message& message : classified.messages) {
        if (request.stopToken().stop_requested()) break;  // a batch of slow calls
        if (message.kind == MessageKind::Response) context_.questions.answer(session->id, message);
        answering.add(handled(context_, server_, caller, message));
    }
    if (answering.empty()) return mcpAnswer(202);
    return std::move(answering).answer(request, accepts);
}

api::Response McpHandler::initialize(const controller::Principal& who, const Message& message,
                                     Accepts accepts) {
    std::string version;
    const Json reply = server_.initialize(message, version);
    api::Response response;
    if (accepts == Accepts::EventsOnly) {
        response = eventAnswer();
        response.body = sseEvent(reply);
    } else {
        response = mcpAnswer(200, dumpJson(reply));
    }
    if (!version.empty()) {
        const Json* capabilities = member(message.params, "capabilities");
        response.headers.add(kSessionHeader, context_.sessions.issue(
                                                 ownerOf(who), version,
                                                 capabilities == nullptr ? Json() : *capabilities));
    }
    return response;
}

api::Response McpHandler::listen(api::Request& request) {
    const controller::Principal who = admitted(context_, request, Counts::Nothing);
    const Accepts accepts = acceptedForms(request);
    if (accepts != Accepts::EventsOnly && accepts != Accepts::Both) {
        api::Response response =
            mcpRefusal(405, {}, rpc::kTransport,
                       "A GET here opens an event stream: Accept: text/event-stream");
        response.headers.add("Allow", "GET, POST, DELETE");
        return response;
    }
    api::Response refusal;
    const std::optional<Session> session = sessionOf(request, who, {}, refusal);
    if (!session) return refusal;
    api::Response response = eventAnswer();
    if (const std::optional<std::string> last = request.header("Last-Event-ID")) {
        if (!context_.replays.knows(session->id, *last)) {
            return mcpRefusal(400, {}, rpc::kTransport, "Unknown Last-Event-ID");
        }
        response.body = api::StreamStarter([&context = context_, id = session->id,
                                            last = *last](std::shared_ptr<api::Stream> stream) {
            context.replays.resume(id, last, std::move(stream));
        });
        return response;
    }
    response.news = true;
    response.body =
        api::StreamStarter([&context = context_, who, id = session->id,
                            interest = Interest::declared(server_.catalog()),
                            stop = request.stopToken()](std::shared_ptr<api::Stream> stream) {
            context.notifier.follow(std::move(stream), {who, interest, id}, stop);
        });
    return response;
}

api::Response McpHandler::endSession(api::Request& request) {
    const controller::Principal who = admitted(context_, request, Counts::Nothing);
    api::Response refusal;
    const std::optional<Session> session = sessionOf(request, who, {}, refusal);
    if (!session) return refusal;
    context_.sessions.revoke({session->id, who.tenant, session->expiry});
    context_.notifier.endSession(session->id);
    return mcpAnswer(204);
}

}  // namespace hearth::mcp
