#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "api/mcp/protocol/JsonRpc.h"
#include "base/Mutex.h"

namespace hearth::mcp {

/// One request in progress, which notifications/cancelled can cancel. Thread-safe.
class Call {
public:
    /// Sets the action on cancellation, which runs in the canceller's thread. If the call is
    /// already cancelled, the action runs at once.
    void onCancel(std::function<void()> action);
    void cancel();
    bool cancelled() const;

private:
    mutable Mutex mutex_;
    bool cancelled_ HEARTH_GUARDED_BY(mutex_) = false;
    std::function<void()> action_ HEARTH_GUARDED_BY(mutex_);
};

/// The requests in progress, by session and request id. Thread-safe. A call is removed when the
/// last pointer to it is released, which may happen after this object is destroyed.
class CancellableCalls {
public:
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
