#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "base/Error.h"
#include "controller/Services.h"

namespace hearth::test {

/// The sandboxes of the fakes: always ready, unless a test holds them back.
class FakeStock {
public:
    void hold() {
        const std::lock_guard lock(mutex_);
        held_ = true;
    }
    /// Gives every waiting and later claim a sandbox, or this error.
    void free(std::optional<Error> instead = std::nullopt) {
        const std::lock_guard lock(mutex_);
        held_ = false;
        refusal_ = std::move(instead);
        changed_.notify_all();
    }
    /// Takes a sandbox for a claim, which waits as its patience says.
    void take(const controller::ClaimPatience& patience) {
        std::unique_lock lock(mutex_);
        if (held_ && !patience.waits) throw controller::MustWait("a sandbox of pool python");
        ++waiting_;
        changed_.notify_all();
        const bool got = changed_.wait(lock, patience.stop, [this] { return !held_; });
        --waiting_;
        changed_.notify_all();
        if (!got) throw controller::takenBack();
        if (refusal_) throw Error(*refusal_);
    }
    /// True if `count` claims wait, at once or soon.
    bool waiting(std::size_t count) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return waiting_ == count; });
    }

private:
    std::mutex mutex_;
    std::condition_variable_any changed_;
    bool held_ = false;             ///< guarded by mutex_
    std::size_t waiting_ = 0;       ///< guarded by mutex_
    std::optional<Error> refusal_;  ///< guarded by mutex_
};

}  // namespace hearth::test
