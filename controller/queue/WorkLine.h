#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "controller/queue/Lanes.h"

namespace hearth::controller {

/// The keys that wait in one lane: first come, first served within a group, the groups in turn. A
/// group with many keys delays another group by only one key at a time. Not thread-safe.
template <typename Key>
class WorkLine {
public:
    explicit WorkLine(const LaneRules& rules) : rules_(rules) {}

    void push(const std::string& group, const Key& key) {
        Group& mine = groups_[group];
        if (mine.keys.empty()) turn_.push_back(group);
        mine.keys.push_back(key);
        ++size_;
    }
    /// Returns the next key whose group may have a worker now; counts the worker for its group.
    std::optional<Key> pop() {
        const unsigned free = rules_.workers > busy_ ? rules_.workers - busy_ : 0;
        for (auto at = turn_.begin(); at != turn_.end(); ++at) {
            Group& mine = groups_[*at];
            if (mine.at_work > 0 && free <= rules_.reserved) continue;
            Key key = std::move(mine.keys.front());
            mine.keys.pop_front();
            ++mine.at_work;
            ++busy_;
            --size_;
            if (mine.keys.empty()) {
                turn_.erase(at);
            } else {
                turn_.splice(turn_.end(), turn_, at);
            }
            return key;
        }
        return std::nullopt;
    }
    /// Must follow each pop(), when the work on its key is done.
    void done(const std::string& group) {
        const auto found = groups_.find(group);
        --busy_;
        if (--found->second.at_work == 0 && found->second.keys.empty()) groups_.erase(found);
    }
    std::size_t size() const { return size_; }

private:
    struct Group {
        std::deque<Key> keys;
        unsigned at_work = 0;
    };

    const LaneRules& rules_;
    std::map<std::string, Group> groups_;
    std::list<std::string> turn_;  ///< groups that have keys, the next one first
    unsigned busy_ = 0;
    std::size_t size_ = 0;
};

}  // namespace hearth::controller
