#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "api/mcp/protocol/JsonRpc.h"

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
    mutable std::mutex mutex_;
    bool cancelled_ = false;        ///< guarded by mutex_
    std::function<void()> action_;  ///< guarded by mutex_
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
        std::mutex mutex;
        std::map<std::string, std::weak_ptr<Call>> calls;  ///< guarded by mutex
    };
    std::shared_ptr<Registry> registry_ = std::make_shared<Registry>();
};

}  // namespace hearth::mcp
