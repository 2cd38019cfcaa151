#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hearth::controller {

/// Bytes kept in each place, `owner/workspace`, with sums per owner and in all, and the places of
/// ended workspaces, sorted by their end. No call scans all places, so none gets slow with many.
/// Not thread-safe.
class KeptPlaces {
public:
    void put(const std::string& place, std::uint64_t bytes);
    void add(const std::string& place, std::uint64_t bytes);
    /// Takes at most what is there; nothing if the place is gone.
    void take(const std::string& place, std::uint64_t bytes);
    void erase(const std::string& place);
    bool has(const std::string& place) const { return places_.contains(place); }

    std::uint64_t of(const std::string& place) const;
    std::uint64_t ofOwner(const std::string& owner) const;
    std::uint64_t all() const { return all_; }

    /// Records the end of its workspace. Not `final`: the time may still change.
    void ended(const std::string& place, std::int64_t unix_ms, bool final);
    /// Returns places whose end is not final, in order, at most `most` that follow `after`.
    std::vector<std::string> open(const std::string& after, std::size_t most) const;
    /// Returns such places of one owner.
    std::vector<std::string> openOf(const std::string& owner) const;
    /// Returns places whose workspace ended at `unix_ms` or before, the oldest end first.
    std::vector<std::string> endedBy(std::int64_t unix_ms, std::size_t most) const;
    /// Returns the non-empty place that makes room for `owner`: its own one that ended first, else,
    /// unless `own_only`, one of the owner that keeps most, if that is more than `owner` keeps.
    std::optional<std::string> toEvict(const std::string& owner, bool own_only) const;

private:
    struct Place {
        std::uint64_t bytes = 0;
        std::optional<std::int64_t> ended;
    };
    using Ends = std::set<std::pair<std::int64_t, std::string>>;
    struct Owner {
        std::uint64_t bytes = 0;
        std::size_t places = 0;
        Ends ended;
    };

    std::optional<std::string> firstEnded(const Owner& owner) const;
    void forgetEnd(const std::string& place, Place& known);

    std::map<std::string, Place> places_;
    std::map<std::string, Owner> owners_;
    std::set<std::string> open_;
    Ends ended_;
    std::uint64_t all_ = 0;
};

/// Return the owner in `owner/workspace`, and the workspace.
std::string ownerOf(const std::string& place);
std::string workspaceOf(const std::string& place);

}  // namespace hearth::controller
