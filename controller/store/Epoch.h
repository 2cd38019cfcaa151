#pragma once

#include <atomic>
#include <cstdint>

namespace hearth::controller {

/// The fencing number of this server's life: agents refuse whoever comes with a lower one. Set by
/// recovery, before the loop starts; among several replicas by the Lease of the one that leads.
/// Thread-safe.
class Epoch {
public:
    Epoch() = default;
    /// `term`: the Lease's number, which nothing changes; 0: there is no Lease. Whoever has a
    /// higher one leads in our place, and must not be outbid.
    explicit Epoch(std::uint64_t term) : fixed_(term > 0), number_(term > 0 ? term : 1) {}

    std::uint64_t get() const { return number_; }
    void set(std::uint64_t number) {
        if (!fixed_) number_ = number;
    }
    /// At least this from now on; recovery learns of higher ones from agents.
    void raise(std::uint64_t least) {
        if (fixed_) return;
        std::uint64_t now = number_;
        while (now < least && !number_.compare_exchange_weak(now, least)) {
        }
    }

private:
    const bool fixed_ = false;
    std::atomic<std::uint64_t> number_{1};
};

}  // namespace hearth::controller
