#pragma once

#include <atomic>
#include <cstdint>

namespace hearth::controller {

/// The fencing number of this server's life: agents refuse whoever comes with a lower one. Set by
/// recovery, before the loop starts. Thread-safe.
class Epoch {
public:
    std::uint64_t get() const { return number_; }
    void set(std::uint64_t number) { number_ = number; }
    /// At least this from now on; recovery learns of higher ones from agents.
    void raise(std::uint64_t least) {
        std::uint64_t now = number_;
        while (now < least && !number_.compare_exchange_weak(now, least)) {
        }
    }

private:
    std::atomic<std::uint64_t> number_{1};
};

}  // namespace hearth::controller
