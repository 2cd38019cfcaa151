#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/mcp/protocol/Conversation.h"
#include "api/mcp/protocol/JsonRpc.h"
#include "base/Error.h"
#include "base/Mutex.h"
#include "base/task/Task.h"
#include "controller/contract/Executions.h"

namespace hearth::mcp {

/// One tool call, as its tool, its transport and its canceller share it. Thread-safe.
class Call {
public:
    /// The tool has begun an execution for the call. `kill` ends it for a caller who cancels: it
    /// may block and throw; empty: the execution continues.
    void runs(std::shared_ptr<controller::Execution> execution, TimePoint now,
              std::function<void()> kill);
    /// Null before runs().
    std::shared_ptr<controller::Execution> execution() const;
    TimePoint ranSince() const;
    /// Blocks until the execution has ended, for `most` at most; not at all without one.
    void attend(std::chrono::milliseconds most);
    /// Is over when attend() learned that the sandbox has refused to run it.
    WaitablePtr refused() const { return refused_; }
    /// Throws the Error of that.
    void requireBegun() const;

    /// The tool has made something, which `undo` ends for a caller who never learns of it. `undo`
    /// may block and throw.
    void made(std::function<void()> undo);
    /// The caller has its answer.
    void told();
    /// Returns what must be called because the call is over, cancelled or not told; may be empty.
    std::function<void()> leftover() const;

    void cancel() { cancelled_->set(); }
    bool cancelled() const { return cancelled_->ready(); }
    /// Is over when the caller has cancelled the call.
    WaitablePtr cancellation() const { return cancelled_; }
    /// The server stops: the call is answered with its present state.
    void stop() { stopping_->set(); }
    bool stopping() const { return stopping_->ready(); }
    /// Is over when the server stops.
    WaitablePtr serverStop() const { return stopping_; }

    /// Its talk with its client, for the tool: waits until the transport opens it.
    static Task<std::shared_ptr<Conversation>> talk(std::shared_ptr<Call> call);
    /// True if the tool waits for its talk.
    bool wantsTalk() const;
    void openTalk(std::shared_ptr<Conversation> conversation);

private:
    mutable Mutex mutex_;
    bool told_ HEARTH_GUARDED_BY(mutex_) = false;
    bool wants_talk_ HEARTH_GUARDED_BY(mutex_) = false;
    std::shared_ptr<controller::Execution> execution_ HEARTH_GUARDED_BY(mutex_);
    TimePoint ran_since_ HEARTH_GUARDED_BY(mutex_){};
    std::optional<Error> refusal_ HEARTH_GUARDED_BY(mutex_);
    std::function<void()> kill_ HEARTH_GUARDED_BY(mutex_);
    std::function<void()> undo_ HEARTH_GUARDED_BY(mutex_);
    std::shared_ptr<Conversation> conversation_ HEARTH_GUARDED_BY(mutex_);
    const std::shared_ptr<Signal> refused_ = std::make_shared<Signal>();
    const std::shared_ptr<Signal> cancelled_ = std::make_shared<Signal>();
    const std::shared_ptr<Signal> stopping_ = std::make_shared<Signal>();
    const std::shared_ptr<Signal> talk_open_ = std::make_shared<Signal>();
};

/// The calls in progress, by session and request id. Thread-safe. A call is removed when the last
/// pointer to it is released, which may happen after this object is destroyed.
class CancellableCalls {
public:
    /// `session`: empty if nothing cancels the call by its id.
    std::shared_ptr<Call> begin(const std::string& session, const Json& id);
    /// False if no such call is in progress.
    bool cancel(const std::string& session, const Json& id);

private:
    struct Registry {
        Mutex mutex;
        std::map<std::string, std::weak_ptr<Call>> calls HEARTH_GUARDED_BY(mutex);
    };
    std::shared_ptr<Registry> registry_ = std::make_shared<Registry>();
};

}  // namespace hearth::mcp
