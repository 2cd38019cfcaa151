#include "controller/executions/KeptPlaces.h"

#include <algorithm>

namespace hearth::controller {

std::string ownerOf(const std::string& place) {
    return place.substr(0, place.find('/'));
}

std::string workspaceOf(const std::string& place) {
    return place.substr(place.find('/') + 1);
}

void KeptPlaces::put(const std::string& place, std::uint64_t bytes) {
    take(place, of(place));
    add(place, bytes);
}

void KeptPlaces::add(const std::string& place, std::uint64_t bytes) {
    const auto [entry, fresh] = places_.try_emplace(place);
    Owner& owner = owners_[ownerOf(place)];
    if (fresh) {
        ++owner.places;
        open_.insert(place);
    }
    entry->second.bytes += bytes;
    owner.bytes += bytes;
    all_ += bytes;
}

void KeptPlaces::take(const std::string& place, std::uint64_t bytes) {
    const auto found = places_.find(place);
    if (found == places_.end()) return;
    const std::uint64_t taken = std::min(found->second.bytes, bytes);
    found->second.bytes -= taken;
    owners_[ownerOf(place)].bytes -= taken;
    all_ -= taken;
}

void KeptPlaces::erase(const std::string& place) {
    const auto found = places_.find(place);
    if (found == places_.end()) return;
    take(place, found->second.bytes);
    forgetEnd(place, found->second);
    open_.erase(place);
    places_.erase(found);
    const auto owner = owners_.find(ownerOf(place));
    if (--owner->second.places == 0) owners_.erase(owner);
}

std::uint64_t KeptPlaces::of(const std::string& place) const {
    const auto found = places_.find(place);
    return found == places_.end() ? 0 : found->second.bytes;
}

std::uint64_t KeptPlaces::ofOwner(const std::string& owner) const {
    const auto found = owners_.find(owner);
    return found == owners_.end() ? 0 : found->second.bytes;
}

void KeptPlaces::forgetEnd(const std::string& place, Place& known) {
    if (!known.ended) return;
    ended_.erase({*known.ended, place});
    owners_[ownerOf(place)].ended.erase({*known.ended, place});
    known.ended.reset();
}

void KeptPlaces::ended(const std::string& place, std::int64_t unix_ms, bool final) {
    const auto found = places_.find(place);
    if (found == places_.end()) return;
    forgetEnd(place, found->second);
    found->second.ended = unix_ms;
    ended_.emplace(unix_ms, place);
    owners_[ownerOf(place)].ended.emplace(unix_ms, place);
    if (final) open_.erase(place);
}

std::vector<std::string> KeptPlaces::open(const std::string& after, std::size_t most) const {
    std::vector<std::string> out;
    for (auto at = open_.upper_bound(after); at != open_.end() && out.size() < most; ++at) {
        out.push_back(*at);
    }
    return out;
}

std::vector<std::string> KeptPlaces::openOf(const std::string& owner) const {
    const std::string prefix = owner + "/";
    std::vector<std::string> out;
    for (auto at = open_.lower_bound(prefix); at != open_.end() && at->starts_with(prefix); ++at) {
        out.push_back(*at);
    }
    return out;
}

std::vector<std::string> KeptPlaces::endedBy(std::int64_t unix_ms, std::size_t most) const {
    std::vector<std::string> out;
    for (const auto& [when, place] : ended_) {
        if (when > unix_ms || out.size() >= most) break;
        out.push_back(place);
    }
    return out;
}

std::optional<std::string> KeptPlaces::firstEnded(const Owner& owner) const {
    for (const auto& [when, place] : owner.ended) {
        if (of(place) > 0) return place;
    }
    return std::nullopt;
}

std::optional<std::string> KeptPlaces::toEvict(const std::string& owner, bool own_only) const {
    if (const auto own = owners_.find(owner); own != owners_.end()) {
        if (std::optional<std::string> mine = firstEnded(own->second)) return mine;
    }
    if (own_only) return std::nullopt;
    const std::uint64_t mine = ofOwner(owner);
    std::uint64_t most = mine;
    std::optional<std::string> best;
    for (const auto& [name, other] : owners_) {
        if (name == owner || other.bytes <= most) continue;
        if (std::optional<std::string> theirs = firstEnded(other)) {
            most = other.bytes;
            best = std::move(theirs);
        }
    }
    return best;
}

}  // namespace hearth::controller
