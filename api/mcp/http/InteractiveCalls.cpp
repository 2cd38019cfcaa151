#include "api/mcp/http/InteractiveCalls.h"

#include <algorithm>
#include <utility>

#include "api/mcp/protocol/Era.h"
#include "base/Error.h"
#include "base/Ids.h"

namespace hearth::mcp {
namespace {

constexpr std::chrono::seconds kAnswerWithin{300};

/// The conversation of one call.
class Talk final : public Conversation {
public:
    Talk(const LiveReply& reply, std::string session, MessageSink& sink, Questions& questions,
         const std::atomic<bool>& stopping)
        : reply_(reply),
          session_(std::move(session)),
          outlet_(sink),
          questions_(questions),
          stopping_(stopping) {}

    void progress(double done, double total) override {
        if (reply_.progress_token.is_null()) return;
        outlet_.send(notificationMessage(
            "notifications/progress",
            {{"progressToken", reply_.progress_token}, {"progress", done}, {"total", total}}));
    }

    void log(const std::string& level, const Json& data) override {
        if (!reply_.log_wanted || logSeverity(level) < reply_.log_severity) return;
        outlet_.send(notificationMessage("notifications/message",
                                         {{"level", level}, {"logger", "hearth"}, {"data", data}}));
    }

    Json ask(const std::string& method, Json params) override {
        if (!reply_.may_ask) {
            throw RpcFailure(
                {rpc::kInternal, "this protocol revision does not let a server ask", {}});
        }
        const std::string id = questions_.open(session_);
        outlet_.send(requestMessage(id, method, std::move(params)));
        const std::optional<Message> answer =
            questions_.wait(id, kAnswerWithin, [this] { return cancelled(); });
        if (!answer) throw RpcFailure({rpc::kInternal, "the client gave no answer", {}});
        if (!answer->error.is_null()) {
            throw RpcFailure(
                {rpc::kInternal,
                 "the client refused: " + stringMember(answer->error, "message").value_or(""),
                 {}});
        }
        return answer->result;
    }

    void hangUp() override { outlet_.hangUp(); }
    bool cancelled() const override { return stopping_ || reply_.call->cancelled(); }

private:
    const LiveReply& reply_;
    const std::string session_;
    MessageSink& outlet_;
    Questions& questions_;
    const std::atomic<bool>& stopping_;
};

}  // namespace

std::string Questions::open(const std::string& session) {
    const std::string id = newId("ask_");
    const MutexLock lock(mutex_);
    open_[id] = {session, std::nullopt};
    return id;
}

std::optional<Message> Questions::wait(const std::string& id, std::chrono::milliseconds timeout,
                                       const std::function<bool()>& give_up) {
    const MutexLock lock(mutex_);
    changed_.waitFor(mutex_, timeout,
                     [&]() HEARTH_REQUIRES(mutex_) { return open_[id].answer || give_up(); });
    std::optional<Message> answer = std::move(open_[id].answer);
    open_.erase(id);
    return answer;
}

bool Questions::answer(const std::string& session, const Message& response) {
    if (!response.id.is_string()) return false;
    const MutexLock lock(mutex_);
    const auto found = open_.find(response.id.get<std::string>());
    if (found == open_.end() || found->second.session != session) return false;
    found->second.answer = response;
    changed_.notifyAll();
    return true;
}

void Questions::wake() {
    const MutexLock lock(mutex_);
    changed_.notifyAll();
}

InteractiveCalls::~InteractiveCalls() {
    stopping_ = true;
    questions_.wake();
    const MutexLock lock(mutex_);
    running_.clear();
}

void InteractiveCalls::start(LiveReply reply, std::string session,
                             std::shared_ptr<MessageSink> sink) {
    const MutexLock lock(mutex_);
    std::erase_if(running_, [](const Running& one) { return one.done->load(); });
    if (running_.size() >= kMost) {
        throw Error(ErrorCode::Unavailable, "too many calls are talking with their clients")
            .hint("Repeat it later.");
    }
    auto done = std::make_shared<std::atomic<bool>>(false);
    reply.call->onCancel([this] { questions_.wake(); });
    running_.push_back(
        {std::jthread([this, done, reply = std::move(reply), session = std::move(session),
                       sink = std::move(sink)]() mutable {
             Talk talk(reply, session, *sink, questions_, stopping_);
             const Json answer = reply.answer(talk);
             if (!reply.call->cancelled()) sink->send(answer);
             sink.reset();
             *done = true;
         }),
         done});
}

}  // namespace hearth::mcp
