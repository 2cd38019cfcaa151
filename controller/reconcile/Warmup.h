#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "controller/spec/PoolSpec.h"
#include "pool/agent/client/AgentClient.h"

namespace hearth::controller {

/// A sandbox's steps between its connection and Ready, as in its pool's `prewarm`: first the
/// interpreters, then the command. Uses no thread: it reports news, and continues when called.
/// Thread-safe.
class Warmup final : public agent::ExecSink, public std::enable_shared_from_this<Warmup> {
public:
    enum class State { Working, Done, Failed };

    /// Returns whether the pool asks for any of it.
    static bool wanted(const PoolSpec& spec);

    /// `news` is called from the thread that reads the agent's connection; must not block.
    Warmup(const PoolSpec& spec, std::shared_ptr<agent::AgentClient> agent,
           std::function<void()> news, const Clock& clock);

    /// Does the next step; call first and after each news. Throws the agent's errors.
    State proceed();
    /// The time by which it must have progressed; after that proceed() returns Failed.
    TimePoint due() const;
    const std::shared_ptr<agent::AgentClient>& agent() const { return agent_; }
    /// Steps that failed although the sandbox is usable without them; empty for none.
    std::string missing() const;
    /// The reason for the failure, with the end of the command's output.
    std::string failure() const;

    void started(const agent::ExecStart&) override {}
    void output(int channel, std::uint64_t offset, std::string_view bytes) override;
    void exited(const agent::ExecResult& result) override;
    void lost(const std::optional<agent::AgentError>& error) override;

private:
    enum class Step { Fresh, Languages, BeforeCommand, Command, Done, Failed };

    void startLanguages();
    void startCommand();
    void prewarmed(const std::optional<agent::PrewarmReply>& reply,
                   const std::optional<agent::AgentError>& refusal);
    void fail(const std::string& why);

    const std::vector<std::string> languages_;
    const std::vector<std::string> imports_;
    const std::vector<std::string> command_;
    const std::chrono::milliseconds timeout_;
    const std::shared_ptr<agent::AgentClient> agent_;
    const std::function<void()> news_;
    const Clock& clock_;
    mutable Mutex mutex_;
    Step step_ HEARTH_GUARDED_BY(mutex_) = Step::Fresh;
    TimePoint due_ HEARTH_GUARDED_BY(mutex_){};
    std::string missing_ HEARTH_GUARDED_BY(mutex_);
    std::string failure_ HEARTH_GUARDED_BY(mutex_);
    std::string printed_ HEARTH_GUARDED_BY(mutex_);  // the end of it
};

}  // namespace hearth::controller
