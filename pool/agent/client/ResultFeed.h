#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hearth::agent {

/// Puts together what an execution shows from the bytes of channel 3 (PROTOCOL.md): one sequence,
/// each result its length and so many bytes. Within the bounds of AgentClient.h; whatever does not
/// fit is a ProtocolError. Holds at most one result in part. Not thread-safe.
class ResultFeed {
public:
    using Each = std::function<void(std::string_view json)>;

    /// The first byte is that at `offset`, where a result begins.
    explicit ResultFeed(std::uint64_t offset) : next_(offset) {}

    /// Calls `each` for every result that these bytes complete. The view lasts for the call.
    void take(std::uint64_t offset, std::string_view bytes, const Each& each);
    /// No result has come in part.
    bool whole() const { return held_.empty(); }

private:
    std::uint64_t next_;
    std::size_t count_ = 0;
    std::string held_;  ///< the beginning of a result: its length, and what there is of it
};

}  // namespace hearth::agent
