#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hearth::agent {

/// Assembles the results of an execution from the bytes of channel 3 (PROTOCOL.md): one sequence,
/// in which each result is its length and that many bytes. Anything outside the bounds of Frame.h
/// is a ProtocolError. Holds at most one incomplete result. Not thread-safe.
class ResultFeed {
public:
    using Each = std::function<void(std::string_view json)>;

    /// The first byte is the one at `offset`, where a result begins.
    explicit ResultFeed(std::uint64_t offset) : next_(offset) {}

    /// Calls `each` for every result that these bytes complete. The view lasts for the call.
    void take(std::uint64_t offset, std::string_view bytes, const Each& each);
    /// True if no result is incomplete.
    bool whole() const { return held_.empty(); }

private:
    std::uint64_t next_;
    std::size_t count_ = 0;
    std::string held_;  ///< the beginning of a result: its length, and the bytes received so far
};

}  // namespace hearth::agent
