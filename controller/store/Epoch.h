#pragma once

#include <atomic>
#include <cstdint>

namespace hearth::controller {

/// The fencing number of this server process: agents refuse a server with a lower number. Set
/// by recovery, before the loop starts; with several replicas, by the leader's Lease.
/// Thread-safe.
class Epoch {
public:
    Epoch() = default;
    /// `term`: the Lease's number, which never changes here; 0: there is no Lease. A replica with a
    /// higher number leads instead of this one, and must not be outbid.
    explicit Epoch(std::uint64_t term) : fixed_(term > 0), number_(term > 0 ? term : 1) {}

    std::uint64_t get() const { return number_; }
    void set(std::uint64_t number) {
        if (!fixed_) number_ = number;
    }
    /// Raises the number to at least `least`; recovery learns higher numbers from agents.
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
