#include "controller/reconcile/Warmup.h"

#include <algorithm>

#include "controller/spec/PrewarmExecution.h"

namespace hearth::controller {
namespace {

/// The agent enforces the time limit itself; one that is this much later does not answer at all.
constexpr auto kGrace = std::chrono::seconds(10);
constexpr std::size_t kPrinted = 2048;

}  // namespace

bool Warmup::wanted(const PoolSpec& spec) {
    return !spec.prewarm_languages.empty() || !spec.prewarm_command.empty();
}

Warmup::Warmup(const PoolSpec& spec, std::shared_ptr<agent::AgentClient> agent,
               std::function<void()> news, const Clock& clock)
    : languages_(spec.prewarm_languages),
      imports_(spec.prewarm_imports),
      command_(spec.prewarm_command),
      timeout_(spec.prewarm_timeout),
      agent_(std::move(agent)),
      news_(std::move(news)),
      clock_(clock) {}

Warmup::State Warmup::proceed() {
    Step step;
    {
        const MutexLock lock(mutex_);
        if (step_ == Step::Fresh && languages_.empty()) step_ = Step::BeforeCommand;
        if (step_ == Step::BeforeCommand && command_.empty()) step_ = Step::Done;
        step = step_;
        if (step == Step::Fresh) step_ = Step::Languages;
        if (step == Step::BeforeCommand) step_ = Step::Command;
        if (step == Step::Fresh || step == Step::BeforeCommand) {
            due_ = clock_.now() + timeout_ + kGrace;
        } else if ((step == Step::Languages || step == Step::Command) && clock_.now() > due_) {
            step = step_ = Step::Failed;
            failure_ = "the agent did not answer to the prewarm in time";
        }
    }
    if (step == Step::Done) return State::Done;
    if (step == Step::Failed) return State::Failed;
    if (step == Step::Fresh) startLanguages();
    if (step == Step::BeforeCommand) startCommand();
    return State::Working;
}

void Warmup::startLanguages() {
    agent::PrewarmRequest request;
    for (const std::string& language : languages_) {
        request.languages[language] = language == "python" ? imports_ : std::vector<std::string>{};
    }
    request.wait = timeout_;
    agent_->prewarm(request, [weak = weak_from_this()](const auto& reply, const auto& refusal) {
        if (const std::shared_ptr<Warmup> self = weak.lock()) self->prewarmed(reply, refusal);
    });
}

void Warmup::startCommand() {
    agent::ExecRequest request;
    request.id = kPrewarmExecution;
    request.fingerprint = kPrewarmExecution;
    request.argv = command_;
    request.timeout = timeout_;
    request.output_limit = 64U << 10U;
    request.prewarm = true;
    agent_->exec(request, shared_from_this());
}

void Warmup::prewarmed(const std::optional<agent::PrewarmReply>& reply,
                       const std::optional<agent::AgentError>& refusal) {
    if (!reply && !refusal) return fail("the agent was lost while it warmed up");
    {
        const MutexLock lock(mutex_);
        if (refusal) missing_ = "the agent refused: " + refusal->code();
        for (const std::string& language : languages_) {
            if (!reply) break;
            const auto why = reply->failed.find(language);
            const bool ready =
                std::find(reply->ready.begin(), reply->ready.end(), language) != reply->ready.end();
            if (why == reply->failed.end() && ready) continue;
            missing_ += (missing_.empty() ? "" : "; ") + language + ": " +
                        (why == reply->failed.end() ? "not ready in time" : why->second);
        }
        step_ = Step::BeforeCommand;
    }
    news_();
}

void Warmup::output(int, std::uint64_t, std::string_view bytes) {
    const MutexLock lock(mutex_);
    printed_ += bytes;
    if (printed_.size() > 2 * kPrinted) printed_.erase(0, printed_.size() - kPrinted);
}

void Warmup::exited(const agent::ExecResult& result) {
    if (result.status != agent::ExecutionStatus::Ok) {
        return fail(std::string("prewarm.command ended with status ") +
                    agent::kExecutionStatuses.of(result.status) + ", exit " +
                    std::to_string(result.exit_code));
    }
    {
        const MutexLock lock(mutex_);
        step_ = Step::Done;
    }
    news_();
}

void Warmup::lost(const std::optional<agent::AgentError>& error) {
    fail(error ? "prewarm.command was refused: " + error->code()
               : "the agent was lost while it warmed up");
}

void Warmup::fail(const std::string& why) {
    {
        const MutexLock lock(mutex_);
        step_ = Step::Failed;
        failure_ = why;
        if (!printed_.empty()) {
            const std::size_t from = printed_.size() - std::min(printed_.size(), kPrinted);
            failure_ += ": " + toUtf8(std::string_view(printed_).substr(from));
        }
    }
    news_();
}

TimePoint Warmup::due() const {
    const MutexLock lock(mutex_);
    return due_;
}

std::string Warmup::missing() const {
    const MutexLock lock(mutex_);
    return missing_;
}

std::string Warmup::failure() const {
    const MutexLock lock(mutex_);
    return failure_;
}

}  // namespace hearth::controller
