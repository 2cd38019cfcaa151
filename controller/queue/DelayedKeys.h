#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/Clock.h"

namespace hearth::controller {

/// Keys that become due later, each with its earliest time. Adding and removing cost O(log n), and
/// reading the next time costs the same however many keys wait. Not thread-safe.
template <typename Key>
class DelayedKeys {
public:
    /// True if this is now the first of all keys. A later time than the key has is ignored.
    bool put(const Key& key, TimePoint at) {
        const auto [entry, fresh] = times_.emplace(key, at);
        if (!fresh) {
            if (entry->second <= at) return false;
            order_.erase({entry->second, key});
            entry->second = at;
        }
        const auto placed = order_.emplace(at, key).first;
        return placed == order_.begin();
    }
    void erase(const Key& key) {
        const auto found = times_.find(key);
        if (found == times_.end()) return;
        order_.erase({found->second, key});
        times_.erase(found);
    }
    std::optional<TimePoint> next() const {
        if (order_.empty()) return std::nullopt;
        return order_.begin()->first;
    }
    /// Takes a key that is due at `now`.
    std::optional<Key> take(TimePoint now) {
        if (order_.empty() || order_.begin()->first > now) return std::nullopt;
        Key key = order_.begin()->second;
        order_.erase(order_.begin());
        times_.erase(key);
        return key;
    }

private:
    std::map<Key, TimePoint> times_;
    std::set<std::pair<TimePoint, Key>> order_;
};

}  // namespace hearth::controller
