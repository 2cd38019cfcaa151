#include "api/mcp/protocol/CancellableCalls.h"

#include <utility>

namespace hearth::mcp {
namespace {

/// The JSON text of the id keeps 1 and "1" apart.
std::string keyOf(const std::string& session, const Json& id) {
    return session + '\n' + dumpJson(id);
}

}  // namespace

void Call::onCancel(std::function<void()> action) {
    {
        const MutexLock lock(mutex_);
        if (!cancelled_) {
            action_ = std::move(action);
            return;
        }
    }
    action();
}

void Call::cancel() {
    std::function<void()> action;
    {
        const MutexLock lock(mutex_);
        if (std::exchange(cancelled_, true)) return;
        action.swap(action_);
    }
    if (action) action();
}

bool Call::cancelled() const {
    const MutexLock lock(mutex_);
    return cancelled_;
}

std::shared_ptr<Call> CancellableCalls::begin(const std::string& session, const Json& id) {
    const std::string key = keyOf(session, id);
    const std::shared_ptr<Call> call(new Call, [registry = registry_, key](Call* gone) {
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
