#pragma once

#include <utility>

namespace hearth {

/// Calls `end`, which does not throw, when its scope is left.
template <class End>
class [[nodiscard]] ScopeExit {
public:
    explicit ScopeExit(End end) : end_(std::move(end)) {}
    ScopeExit(const ScopeExit&) = delete;
    ScopeExit& operator=(const ScopeExit&) = delete;
    ~ScopeExit() {
        if (armed_) end_();
    }
    /// The scope's end makes no call.
    void cancel() noexcept { armed_ = false; }

private:
    End end_;
    bool armed_ = true;
};

}  // namespace hearth
