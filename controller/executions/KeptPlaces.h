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

/// Bytes kept in each place, `owner/workspace`, with sums per owner and in all, and the places
/// whose workspace has ended, in that order. No call gets slower with the number of places. Not
/// thread-safe.
class KeptPlaces {
public:
    void put(const std::string& place, std::uint64_t bytes);
    void add(const std::string& place, std::uint64_t bytes);
    /// At most what is there; nothing where the place has gone.
    void take(const std::string& place, std::uint64_t bytes);
    void erase(const std::string& place);
    bool has(const std::string& place) const { return places_.contains(place); }

    std::uint64_t of(const std::string& place) const;
    std::uint64_t ofOwner(const std::string& owner) const;
    std::uint64_t all() const { return all_; }

    /// Its workspace ended then. Not `final`: the time may turn out to be another.
    void ended(const std::string& place, std::int64_t unix_ms, bool final);
    /// Places whose end is not final, in order, at most this many after `after`.
    std::vector<std::string> open(const std::string& after, std::size_t most) const;
    /// Those of one owner.
    std::vector<std::string> openOf(const std::string& owner) const;
    /// Places whose workspace ended at `unix_ms` or before, the oldest end first.
    std::vector<std::string> endedBy(std::int64_t unix_ms, std::size_t most) const;
    /// The place with anything in it that makes room for `owner`: its own that ended first, else
    /// unless `own_only` that of the owner who keeps most, and more than it.
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

/// The owner in `owner/workspace`, and the workspace.
std::string ownerOf(const std::string& place);
std::string workspaceOf(const std::string& place);

}  // namespace hearth::controller
