#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "api/mcp/protocol/JsonRpc.h"
#include "base/Mutex.h"

namespace hearth::mcp {

/// One request in work, so that notifications/cancelled can find it. Thread-safe.
class Call {
public:
    /// The action on cancellation; runs at once if that has already happened. Runs in the
    /// canceller's thread.
    void onCancel(std::function<void()> action);
    void cancel();
    bool cancelled() const;

private:
    mutable Mutex mutex_;
    bool cancelled_ HEARTH_GUARDED_BY(mutex_) = false;
    std::function<void()> action_ HEARTH_GUARDED_BY(mutex_);
};

/// The requests in work by session and request id. Thread-safe; a call leaves it when the last
/// pointer to it goes, also after the registry itself.
class CancellableCalls {
public:
    std::shared_ptr<Call> begin(const std::string& session, const Json& id);
    /// False if no such call is in work.
    bool cancel(const std::string& session, const Json& id);

private:
    struct Registry {
        Mutex mutex;
        std::map<std::string, std::weak_ptr<Call>> calls HEARTH_GUARDED_BY(mutex);
    };
    std::shared_ptr<Registry> registry_ = std::make_shared<Registry>();
};

}  // namespace hearth::mcp
