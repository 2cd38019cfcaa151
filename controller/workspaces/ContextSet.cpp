#include "controller/workspaces/ContextSet.h"

#include <utility>

namespace hearth::controller {

bool ContextSet::add(ContextFacts facts) {
    const MutexLock lock(mutex_);
    std::string id = facts.id;
    return entries_.emplace(std::move(id), Entry{std::move(facts), {}, {}}).second;
}

bool ContextSet::erase(const std::string& id) {
    const MutexLock lock(mutex_);
    return entries_.erase(id) > 0;
}

bool ContextSet::eraseWith(const std::string& id, const std::string& execution) {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.spared == execution) return false;
    entries_.erase(found);
    return true;
}

std::size_t ContextSet::clear() {
    const MutexLock lock(mutex_);
    return std::exchange(entries_, {}).size();
}

bool ContextSet::begin(const std::string& id, const std::string& execution) {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return true;  // the agent reports that
    if (!found->second.running.empty()) return found->second.running == execution;
    found->second.running = execution;
    return true;
}

void ContextSet::end(const std::string& id, const std::string& execution) {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(id);
    if (found != entries_.end() && found->second.running == execution) {
        found->second.running.clear();
    }
}

void ContextSet::expectEnd(const std::string& id) {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(id);
    if (found != entries_.end()) found->second.spared = found->second.running;
}

std::optional<ContextFacts> ContextSet::find(const std::string& id) const {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return std::nullopt;
    return found->second.facts;
}

std::string ContextSet::running(const std::string& id) const {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(id);
    return found == entries_.end() ? std::string() : found->second.running;
}

std::vector<ContextFacts> ContextSet::all() const {
    std::vector<ContextFacts> out;
    const MutexLock lock(mutex_);
    out.reserve(entries_.size());
    for (const auto& [id, entry] : entries_) out.push_back(entry.facts);
    return out;
}

}  // namespace hearth::controller
