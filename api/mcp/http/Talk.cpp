#include "api/mcp/http/Talk.h"

#include <chrono>
#include <utility>

#include "api/mcp/protocol/Era.h"
#include "base/Ids.h"

namespace hearth::mcp {
namespace {

constexpr std::chrono::seconds kAnswerWithin{300};

}  // namespace

std::optional<Message> Question::answer() const {
    const MutexLock lock(mutex_);
    return answer_;
}

void Question::answered(const Message& response) {
    {
        const MutexLock lock(mutex_);
        answer_ = response;
    }
    come_.set();
}

std::string Questions::open(const std::shared_ptr<Question>& question) {
    std::string id = newId("ask_");
    const MutexLock lock(mutex_);
    std::erase_if(open_, [](const auto& each) { return each.second.expired(); });
    open_[id] = question;
    return id;
}

bool Questions::answer(const std::string& session, const Message& response) {
    if (!response.id.is_string()) return false;
    std::shared_ptr<Question> question;
    {
        const MutexLock lock(mutex_);
        const auto found = open_.find(response.id.get<std::string>());
        if (found != open_.end()) question = found->second.lock();
    }
    if (!question || question->session() != session) return false;
    question->answered(response);
    return true;
}

Talk::Talk(const ToolCall& call, std::string session, std::shared_ptr<MessageSink> sink,
           Questions& questions, const Clock& clock)
    : progress_token_(call.progress_token),
      log_severity_(call.log_severity),
      modern_(call.modern),
      session_(std::move(session)),
      sink_(std::move(sink)),
      questions_(questions),
      clock_(clock) {}

void Talk::progress(double done, double total) {
    if (progress_token_.is_null()) return;
    sink_->send(notificationMessage(
        "notifications/progress",
        {{"progressToken", progress_token_}, {"progress", done}, {"total", total}}));
}

void Talk::log(const std::string& level, const Json& data) {
    const bool open = log_severity_.has_value() || !modern_;
    if (!open || logSeverity(level) < log_severity_) return;
    sink_->send(notificationMessage("notifications/message",
                                    {{"level", level}, {"logger", "hearth"}, {"data", data}}));
}

Task<Json> Talk::ask(std::string method, Json params) {
    if (modern_) {
        throw RpcFailure({rpc::kInternal, "this protocol revision does not let a server ask", {}});
    }
    auto question = std::make_shared<Question>(session_, clock_.now() + kAnswerWithin);
    const std::string id = questions_.open(question);
    sink_->send(requestMessage(id, method, std::move(params)));
    co_await question;
    const std::optional<Message> answer = question->answer();
    if (!answer) throw RpcFailure({rpc::kInternal, "the client gave no answer", {}});
    if (!answer->error.is_null()) {
        throw RpcFailure(
            {rpc::kInternal,
             "the client refused: " + stringMember(answer->error, "message").value_or(""),
             {}});
    }
    co_return answer->result;
}

}  // namespace hearth::mcp
