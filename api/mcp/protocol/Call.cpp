#include "api/mcp/protocol/Call.h"

#include <utility>

namespace hearth::mcp {
namespace {

/// The JSON text of the id keeps 1 and "1" apart.
std::string keyOf(const std::string& session, const Json& id) {
    return session + '\n' + dumpJson(id);
}

}  // namespace

void Call::runs(std::shared_ptr<controller::Execution> execution, TimePoint now,
                std::function<void()> kill) {
    const MutexLock lock(mutex_);
    execution_ = std::move(execution);
    ran_since_ = now;
    kill_ = std::move(kill);
}

std::shared_ptr<controller::Execution> Call::execution() const {
    const MutexLock lock(mutex_);
    return execution_;
}

TimePoint Call::ranSince() const {
    const MutexLock lock(mutex_);
    return ran_since_;
}

void Call::attend(std::chrono::milliseconds most) {
    const std::shared_ptr<controller::Execution> running = execution();
    if (!running) return;
    try {
        running->wait(most);
    } catch (const Error& error) {  // for the tool's task
        {
            const MutexLock lock(mutex_);
            refusal_ = error;
        }
        refused_->set();
    }
}

void Call::requireBegun() const {
    const MutexLock lock(mutex_);
    if (refusal_) throw *refusal_;
}

void Call::made(std::function<void()> undo) {
    const MutexLock lock(mutex_);
    undo_ = std::move(undo);
}

void Call::told() {
    const MutexLock lock(mutex_);
    told_ = true;
}

std::function<void()> Call::leftover() const {
    const MutexLock lock(mutex_);
    if (execution_) return cancelled() && !execution_->finished() ? kill_ : nullptr;
    return told_ ? nullptr : undo_;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the frame keeps it
Task<std::shared_ptr<Conversation>> Call::talk(std::shared_ptr<Call> call) {
    {
        const MutexLock lock(call->mutex_);
        call->wants_talk_ = true;
    }
    std::shared_ptr<Signal> open = call->talk_open_;
    co_await open;
    const MutexLock lock(call->mutex_);
    co_return call->conversation_;
}

bool Call::wantsTalk() const {
    const MutexLock lock(mutex_);
    return wants_talk_;
}

void Call::openTalk(std::shared_ptr<Conversation> conversation) {
    {
        const MutexLock lock(mutex_);
        conversation_ = std::move(conversation);
    }
    talk_open_->set();
}

std::shared_ptr<Call> CancellableCalls::begin(const std::string& session, const Json& id) {
    if (session.empty()) return std::make_shared<Call>();
    const std::string key = keyOf(session, id);
    std::shared_ptr<Call> call(new Call, [registry = registry_, key](Call* gone) {
        const std::unique_ptr<Call> owned(gone);
        const MutexLock lock(registry->mutex);
        const auto found = registry->calls.find(key);
        // A later call may have reused the same id.
        if (found != registry->calls.end() && found->second.expired()) registry->calls.erase(found);
    });
    const MutexLock lock(registry_->mutex);
    registry_->calls[key] = call;
    return call;
}

bool CancellableCalls::cancel(const std::string& session, const Json& id) {
    std::shared_ptr<Call> call;
    {
        const MutexLock lock(registry_->mutex);
        const auto found = registry_->calls.find(keyOf(session, id));
        if (found != registry_->calls.end()) call = found->second.lock();
    }
    if (!call) return false;
    call->cancel();
    return true;
}

}  // namespace hearth::mcp
