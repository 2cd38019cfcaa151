#include "api/mcp/http/SseTransport.h"

#include <utility>

#include "api/mcp/http/Admission.h"
#include "api/mcp/http/ReplyAssembler.h"
#include "base/Ids.h"

namespace hearth::mcp {

struct SseTransport::Session {
    controller::Principal who;
    std::string id;
    std::shared_ptr<MessageSink> sink;
    Mutex mutex;
    std::string version HEARTH_GUARDED_BY(mutex);
    Json client_capabilities HEARTH_GUARDED_BY(mutex) = Json::object();

    std::string currentVersion() {
        const MutexLock lock(mutex);
        return version;
    }
};

namespace {

/// One answer's part of a session's stream, which continues after it.
class SharedOutlet final : public MessageSink {
public:
    explicit SharedOutlet(std::shared_ptr<MessageSink> stream) : stream_(std::move(stream)) {}

    void send(const Json& message) override { stream_->send(message); }
    bool closed() const override { return stream_->closed(); }
    std::shared_ptr<void> onClosed(std::function<void()> callback) override {
        return stream_->onClosed(std::move(callback));
    }

private:
    const std::shared_ptr<MessageSink> stream_;
};

}  // namespace

SseTransport::SseTransport(McpContext& context, McpServer& server, std::string messages_path)
    : context_(context), server_(server), messages_path_(std::move(messages_path)) {}

api::Response SseTransport::handle(api::Request& request) {
    if (request.method() == "GET") return open(request);
    if (request.method() == "POST") return message(request);
    api::Response response = mcpRefusal(405, {}, rpc::kTransport, "Method not allowed");
    response.headers.add("Allow", "GET, POST");
    return response;
}

api::Response SseTransport::open(api::Request& request) {
    const controller::Principal who = admitted(context_, request, Counts::Nothing);
    api::Response response = eventAnswer();
    response.news = true;
    response.body =
        api::StreamStarter([table = table_, who, path = messages_path_, &context = context_,
                            interest = Interest::declared(server_.catalog()),
                            stop = request.stopToken()](std::shared_ptr<api::Stream> stream) {
            auto session = std::make_shared<Session>();
            session->who = who;
            session->id = newId("");
            session->sink = std::make_shared<StreamSink>(stream);
            {  // First: a client may post as soon as it reads the endpoint.
                const MutexLock lock(table->mutex);
                table->sessions[session->id] = session;
            }
            stream->send("event: endpoint\ndata: " + path + "?sessionId=" + session->id + "\n\n");
            context.notifier.follow(stream, {who, interest, session->id}, stop);
            const auto forget = [weak = std::weak_ptr<Table>(table), &notifier = context.notifier,
                                 id = session->id] {
                const std::shared_ptr<Table> sessions = weak.lock();
                if (!sessions) return;
                std::shared_ptr<Session> gone;  // destroyed after the lock
                {
                    const MutexLock lock(sessions->mutex);
                    const auto found = sessions->sessions.find(id);
                    if (found == sessions->sessions.end()) return;
                    gone = std::move(found->second);
                    sessions->sessions.erase(found);
                }
                notifier.endSession(id);
            };
            stream->onClosed(forget);
        });
    return response;
}

api::Response SseTransport::message(api::Request& request) {
    const controller::Principal who = admitted(context_, request, Counts::Call);
    const std::string id =
        request.query("sessionId").value_or(request.query("session_id").value_or(""));
    std::shared_ptr<Session> session;
    {
        const MutexLock lock(table_->mutex);
        const auto found = table_->sessions.find(id);
        if (found != table_->sessions.end()) session = found->second;
    }
    // Only the token that opened the stream: the answers to another token would go to a stream that
    // its caller does not read.
    if (!session || session->who.tenant != who.tenant || session->who.token_id != who.token_id) {
        return mcpRefusal(404, {}, rpc::kSessionNotFound, "Session not found");
    }
    return context_.shares.answer(request, who.tenant, [this, &request, who, session] {
        return posted(request, who, session);
    });
}

api::Response SseTransport::posted(api::Request& request, const controller::Principal& who,
                                   const std::shared_ptr<Session>& session) {
    std::variant<Json, api::Response> json = postedJson(request, context_.options.max_body);
    if (auto* refusal = std::get_if<api::Response>(&json)) return std::move(*refusal);
    const Classified classified = classify(std::get<Json>(json), std::nullopt);
    if (classified.kind == Classified::Kind::Refused) {
        return mcpRefusal(classified.status, classified.id, classified.error.code,
                          classified.error.message, classified.error.data);
    }
    if (classified.batch && session->currentVersion() != kBatchVersion) {
        return mcpRefusal(400, {}, rpc::kInvalidRequest,
                          "Batches exist in protocol version 2025-03-26 only");
    }
    countFurther(context_, request, who, classified.messages.size());
    for (const Message& each : classified.messages) take(request, session, each);
    api::Response response = mcpAnswer(202, "Accepted");
    response.headers = {{"Content-Type", "text/plain"}};
    return response;
}

void SseTransport::take(api::Request& request, const std::shared_ptr<Session>& session,
                        const Message& message) {
    if (message.kind == MessageKind::Response) {
        context_.questions.answer(session->id, message);
        return;
    }
    if (message.kind == MessageKind::Request && message.method == "initialize") {
        std::string version;
        const Json reply = server_.initialize(message, version);
        {
            const MutexLock lock(session->mutex);
            session->version = version;
            if (const Json* capabilities = member(message.params, "capabilities")) {
                session->client_capabilities = *capabilities;
            }
        }
        session->sink->send(reply);
        return;
    }
    Caller caller = callerOf(request, session->who);
    caller.context.session = session->id;
    caller.calls_scope = session->id;
    caller.log_severity = context_.log_levels.of(session->id);
    {
        const MutexLock lock(session->mutex);
        caller.version = session->version;
        caller.context.client_capabilities = session->client_capabilities;
    }
    McpServer::Reply reply = handled(context_, server_, caller, message);
    const auto sink = std::make_shared<SharedOutlet>(session->sink);
    if (const auto* done = std::get_if<Json>(&reply)) sink->send(*done);
    if (auto* call = std::get_if<ToolCall>(&reply)) {
        followCall(context_, std::move(*call), sink, request.stopToken(), session->id);
    }
}

}  // namespace hearth::mcp
