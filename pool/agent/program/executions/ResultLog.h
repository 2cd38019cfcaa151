#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pool/agent/protocol/Frame.h"

namespace hearth::agent {

/// The results of code as one sequence of bytes: each result's length, then its JSON. Bounded:
/// further results are only counted. Not thread-safe.
class ResultLog {
public:
    static constexpr std::size_t kMaxBytes = 8U << 20U;
    static constexpr std::size_t kMaxResults = 100;

    struct Piece {
        /// The number of output bytes of the execution that come before it.
        std::uint64_t behind = UINT64_MAX;
        std::string_view bytes;
    };

    /// `behind`: the number of output bytes before it.
    void append(std::string_view json, std::uint64_t behind) {
        if (results_.size() >= kMaxResults || bytes_.size() + json.size() + 4 > kMaxBytes) {
            ++dropped_;
            return;
        }
        unsigned char length[4];
        putU32(length, static_cast<std::uint32_t>(json.size()));
        bytes_.append(reinterpret_cast<char*>(length), sizeof(length)).append(json);
        results_.push_back({bytes_.size(), behind});
    }

    /// Returns at most `most` bytes from `from` on, of one result; valid until append.
    Piece read(std::uint64_t from, std::size_t most) const {
        for (const Result& result : results_) {
            if (result.end <= from) continue;
            const auto at = static_cast<std::size_t>(from);
            return {result.behind,
                    std::string_view(bytes_).substr(at, std::min(most, result.end - at))};
        }
        return {};
    }

    std::uint64_t size() const noexcept { return bytes_.size(); }
    std::uint64_t dropped() const noexcept { return dropped_; }

private:
    struct Result {
        std::size_t end;
        std::uint64_t behind;
    };
    std::string bytes_;
    std::vector<Result> results_;
    std::uint64_t dropped_ = 0;
};

}  // namespace hearth::agent
