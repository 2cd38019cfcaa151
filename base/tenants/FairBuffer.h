#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hearth {

/// The newest items up to a total weight. Beyond it, the group with the most weight loses its
/// oldest item, so a flood in one group leaves the lighter groups alone. Keeps at least one item,
/// however heavy. push() takes logarithmic time. Not thread-safe.
template <typename T>
class FairBuffer {
public:
    explicit FairBuffer(std::size_t most) : most_(most) {}
    FairBuffer(const FairBuffer&) = delete;
    FairBuffer& operator=(const FairBuffer&) = delete;

    /// Returns how many items were lost; the new one may be among them.
    std::size_t push(const std::string& group, T item, std::size_t weight = 1) {
        const auto own = groups_.try_emplace(group).first;
        Group& counts = own->second;
        entries_.emplace_hint(entries_.end(), ++last_, Entry{std::move(item), weight, own});
        if (counts.first == 0) {
            counts.first = last_;
        } else {
            ranks_.erase(rankOf(counts));
            entries_.at(counts.last).next = last_;
        }
        counts.last = last_;
        counts.weight += weight;
        ranks_.insert(rankOf(counts));
        weight_ += weight;
        std::size_t lost = 0;
        for (; weight_ > most_ && entries_.size() > 1; ++lost) loseOne();
        return lost;
    }

    std::size_t size() const { return entries_.size(); }
    bool empty() const { return entries_.empty(); }
    /// The id of the latest item, lost ones included. Ids count from 1.
    std::uint64_t last() const { return last_; }
    /// The id after which `most` items remain.
    std::uint64_t before(std::size_t most) const {
        if (most == 0 || empty()) return last_;
        const std::size_t back = std::min(most, size());
        return std::prev(entries_.end(), static_cast<std::ptrdiff_t>(back))->first - 1;
    }
    /// Visits at most `most` items with a greater id, oldest first: `visit(id, item)`.
    template <typename Visit>
    void after(std::uint64_t id, std::size_t most, const Visit& visit) const {
        for (auto at = entries_.upper_bound(id); at != entries_.end() && most > 0; ++at, --most) {
            visit(at->first, at->second.item);
        }
    }
    /// Moves all items out, oldest first.
    std::vector<T> takeAll() {
        std::vector<T> items;
        items.reserve(size());
        for (auto& [id, entry] : entries_) items.push_back(std::move(entry.item));
        entries_.clear();
        groups_.clear();
        ranks_.clear();
        weight_ = 0;
        return items;
    }

private:
    struct Group {
        std::uint64_t first = 0;  ///< its oldest item; 0 only before its first one
        std::uint64_t last = 0;
        std::size_t weight = 0;
    };
    using Groups = std::map<std::string, Group>;
    struct Entry {
        T item;
        std::size_t weight = 0;
        typename Groups::iterator group;
        std::uint64_t next = 0;  ///< the next item of its group; 0: it is the last
    };
    /// Orders the groups: the last one loses an item. Of equal weights, that is the one with the
    /// oldest item, so a crowd of small groups loses the oldest items, too.
    struct Rank {
        std::size_t weight = 0;
        std::uint64_t first = 0;
        bool operator<(const Rank& other) const {
            return weight != other.weight ? weight < other.weight : first > other.first;
        }
    };
    static Rank rankOf(const Group& group) { return {group.weight, group.first}; }

    void loseOne() {
        const auto rank = std::prev(ranks_.end());
        const auto oldest = entries_.find(rank->first);
        const auto group = oldest->second.group;
        ranks_.erase(rank);
        weight_ -= oldest->second.weight;
        group->second.weight -= oldest->second.weight;
        group->second.first = oldest->second.next;
        if (group->second.first == 0) {
            groups_.erase(group);
        } else {
            ranks_.insert(rankOf(group->second));
        }
        entries_.erase(oldest);
    }

    const std::size_t most_;
    std::size_t weight_ = 0;
    std::uint64_t last_ = 0;
    std::map<std::uint64_t, Entry> entries_;
    Groups groups_;  ///< those with items
    std::set<Rank> ranks_;
};

}  // namespace hearth
