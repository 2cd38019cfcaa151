#pragma once

#include <atomic>

namespace hearth::rest {

/// Lets many threads request a step while only one of them runs it: a thread that comes meanwhile
/// leaves a mark and returns, and the step runs once more. Holds no lock, so a step may call
/// anything. Thread-safe.
class Turnstile {
public:
    template <typename Step>
    void pass(Step&& step) {
        if (asked_.fetch_add(1) != 0) return;
        unsigned seen = 1;
        do {
            seen = asked_.load();
            step();
        } while (asked_.fetch_sub(seen) != seen);
    }

private:
    std::atomic<unsigned> asked_{0};
};

}  // namespace hearth::rest
