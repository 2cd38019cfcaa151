#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "api/mcp/protocol/Era.h"
#include "base/Mutex.h"

namespace hearth::mcp {

/// The level that each session has set by logging/setLevel, kept in memory for the last kMost
/// sessions of a tenant. After a restart a session gets no log messages until it sets one again.
/// Thread-safe.
class LogLevels {
public:
    /// A word that is not a level changes nothing.
    void set(const std::string& tenant, const std::string& session, std::string_view level) {
        const std::optional<int> severity = logSeverity(level);
        if (!severity) return;
        const MutexLock lock(mutex_);
        std::deque<std::string>& order = order_[tenant];
        if (levels_.insert_or_assign(session, *severity).second) order.push_back(session);
        if (order.size() <= kMost) return;
        levels_.erase(order.front());
        order.pop_front();
    }

    std::optional<int> of(const std::string& session) const {
        const MutexLock lock(mutex_);
        const auto found = levels_.find(session);
        return found == levels_.end() ? std::nullopt : std::optional(found->second);
    }

    static constexpr std::size_t kMost = 2'000;

private:
    mutable Mutex mutex_;
    std::map<std::string, int> levels_ HEARTH_GUARDED_BY(mutex_);
    /// By tenant, oldest first.
    std::map<std::string, std::deque<std::string>> order_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::mcp
