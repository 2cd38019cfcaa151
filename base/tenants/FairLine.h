#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace hearth {

/// A line in which tenants take turns in the order in which they came: per turn, items that cost
/// as much as the tenant's weight; within a tenant, first come, first served. A tenant whose items
/// cost more skips later turns for it. Not thread-safe.
template <typename T>
class FairLine {
public:
    /// `weight`: the tenant's weight from now on; at least 1. `cost`: at least 1.
    void push(const std::string& tenant, T item, std::size_t weight = 1, std::size_t cost = 1) {
        ++size_;
        Queue* queue = find(tenant);
        if (queue == nullptr) {
            queues_.push_back({tenant, {}, weight, takeDebt(tenant)});
            queue = &queues_.back();
        }
        queue->weight = weight;
        queue->items.push_back({std::move(item), cost});
    }

    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    std::size_t of(const std::string& tenant) const {
        const Queue* queue = find(tenant);
        return queue == nullptr ? 0 : queue->items.size();
    }

    /// The next item. The line must not be empty.
    const T& next() const { return queues_.front().items.front().item; }
    T pop() {
        return *popIf([](const std::string&) { return true; });
    }
    /// The first item whose tenant `may` have its turn now, tenants in the order of their turns;
    /// null if none may.
    template <typename May>
    const T* nextIf(const May& may) const {
        const auto queue = firstOf(
            queues_, [&](const Queue& each) { return may(each.tenant, each.items.front().item); });
        return queue == queues_.end() ? nullptr : &queue->items.front().item;
    }
    /// The next item of the tenants that `may` have their turn now; nullopt if none may.
    template <typename May>
    std::optional<T> popIf(const May& may) {
        const auto queue = firstOf(queues_, [&](const Queue& each) { return may(each.tenant); });
        if (queue == queues_.end()) return std::nullopt;
        passTo(queue);
        std::optional<T> item = std::move(queue->items.front().item);
        queue->served += queue->items.front().cost;
        queue->items.pop_front();
        --size_;
        if (queue->items.empty()) {
            remove(queue);
        } else if (queue->served >= queue->weight) {
            endTurn(queue);
        }
        skipPaid();
        return item;
    }

    /// Takes the item out. If it was the next one, its tenant's turn ends: otherwise a tenant with
    /// one item after another that cannot be served would hold up the other tenants.
    bool erase(const std::string& tenant, const T& item) {
        const auto queue = std::find_if(queues_.begin(), queues_.end(),
                                        [&](const Queue& each) { return each.tenant == tenant; });
        if (queue == queues_.end()) return false;
        const auto at = std::find_if(queue->items.begin(), queue->items.end(),
                                     [&](const Entry& each) { return each.item == item; });
        if (at == queue->items.end()) return false;
        const bool its_turn = queue == queues_.begin() && at == queue->items.begin();
        queue->items.erase(at);
        --size_;
        if (queue->items.empty()) {
            remove(queue);
        } else if (its_turn) {
            endTurn(queue);
        }
        skipPaid();
        return true;
    }

    /// Takes out the newest item of the tenant with the most, so that `tenant` may add one to a
    /// full line. nullopt if `tenant` would then have as many as that one had: the two would
    /// displace each other for ever.
    std::optional<T> displaceFor(const std::string& tenant) {
        const auto most = std::max_element(
            queues_.begin(), queues_.end(),
            [](const Queue& a, const Queue& b) { return a.items.size() < b.items.size(); });
        if (most == queues_.end() || of(tenant) + 1 >= most->items.size()) return std::nullopt;
        T item = std::move(most->items.back().item);
        most->items.pop_back();
        --size_;
        return item;
    }

    /// How many items are served before this one, if none comes or goes.
    std::size_t before(const std::string& tenant, const T& item) const {
        const Queue* own = find(tenant);
        if (own == nullptr) return 0;
        std::size_t count = 0;
        std::size_t cost = own->served;
        for (const Entry& each : own->items) {
            if (each.item == item) break;
            ++count;
            cost += each.cost;
        }
        const std::size_t turns = cost / own->weight;
        bool ahead = true;
        for (const Queue& each : queues_) {
            if (&each == own) {
                ahead = false;
            } else {
                const std::size_t most = (turns + (ahead ? 1 : 0)) * each.weight;
                std::size_t spent = each.served;
                for (const Entry& entry : each.items) {
                    if (spent >= most) break;
                    ++count;
                    spent += entry.cost;
                }
            }
        }
        return count;
    }

    template <typename Visit>
    void each(const Visit& visit) const {
        for (const Queue& queue : queues_) {
            for (const Entry& entry : queue.items) visit(entry.item);
        }
    }

private:
    struct Entry {
        T item;
        std::size_t cost = 1;
    };
    struct Queue {
        std::string tenant;
        std::deque<Entry> items;  ///< never empty
        std::size_t weight = 1;
        std::size_t served = 0;  ///< the cost in its present turn, and what it had too much before

        /// The number of turns that it had in advance.
        std::size_t owed() const { return served / weight; }
    };
    /// Returns the queue that comes first of those that `may`, if turns had in advance are skipped.
    template <typename Queues, typename May>
    static auto firstOf(Queues& queues, const May& may) {
        auto first = queues.end();
        for (auto each = queues.begin(); each != queues.end(); ++each) {
            if (first != queues.end() && first->owed() == 0) break;
            if ((first == queues.end() || each->owed() < first->owed()) && may(*each)) first = each;
        }
        return first;
    }
    /// Passes over the turns that tenants had in advance until it is this one's: if it stands
    /// behind tenants that may not have their turn, skipPaid() does not reach it.
    void passTo(const typename std::list<Queue>::iterator& queue) {
        while (true) {
            for (auto next = queues_.begin(); next != queue;) {
                const auto each = next++;
                if (each->owed() > 0) endTurn(each);
            }
            if (queue->owed() == 0) return;
            endTurn(queue);
        }
    }
    void endTurn(const typename std::list<Queue>::iterator& queue) {
        queue->served -= std::min(queue->served, queue->weight);
        queues_.splice(queues_.end(), queues_, queue);
    }
    /// Removes a queue without items. What it had too much counts if its tenant comes again while
    /// others are in line.
    void remove(const typename std::list<Queue>::iterator& queue) {
        if (queue->served > queue->weight) debts_[queue->tenant] = queue->served - queue->weight;
        queues_.erase(queue);
        if (queues_.empty()) debts_.clear();
    }
    std::size_t takeDebt(const std::string& tenant) {
        const auto found = debts_.find(tenant);
        if (found == debts_.end()) return 0;
        const std::size_t debt = found->second;
        debts_.erase(found);
        return debt;
    }
    /// Passes over the turns that tenants had in advance.
    void skipPaid() {
        while (!queues_.empty() && queues_.front().owed() > 0) {
            endTurn(queues_.begin());
        }
    }
    const Queue* find(const std::string& tenant) const {
        for (const Queue& queue : queues_) {
            if (queue.tenant == tenant) return &queue;
        }
        return nullptr;
    }
    Queue* find(const std::string& tenant) {
        return const_cast<Queue*>(std::as_const(*this).find(tenant));
    }

    std::list<Queue> queues_;                   ///< the next group comes first
    std::map<std::string, std::size_t> debts_;  ///< of tenants that are not in line
    std::size_t size_ = 0;
};

}  // namespace hearth
