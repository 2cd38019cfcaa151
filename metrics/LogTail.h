#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/Mutex.h"
#include "base/Subscribers.h"

namespace hearth::metrics {

/// The last lines of the log, for readers through the API. Lines are dropped by their bytes, oldest
/// first. Thread-safe.
class LogTail {
public:
    struct Line {
        std::uint64_t id = 0;  ///< from 1, without gaps
        std::string text;      ///< without its line break
    };

    explicit LogTail(std::size_t most_bytes = 1U << 20U) : most_(most_bytes) {}
    LogTail(const LogTail&) = delete;
    LogTail& operator=(const LogTail&) = delete;

    void add(std::string_view line);
    /// At most `most` lines with a greater id, oldest first.
    std::vector<Line> after(std::uint64_t id, std::size_t most) const;
    /// The id after which `most` lines remain.
    std::uint64_t before(std::size_t most) const;
    /// Like Subscribers::add(). A separate thread calls `changed`: a logging one may hold any lock.
    std::shared_ptr<void> subscribe(std::function<void()> changed);

private:
    void tell(const std::stop_token& stop);

    const std::size_t most_;
    mutable Mutex mutex_;
    std::deque<Line> lines_ HEARTH_GUARDED_BY(mutex_);
    std::size_t bytes_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::uint64_t last_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::uint64_t told_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::size_t watchers_ HEARTH_GUARDED_BY(mutex_) = 0;
    StoppableCondition changed_;
    Subscribers subscribers_;
    std::jthread thread_ HEARTH_GUARDED_BY(mutex_);  ///< runs once somebody watches
};

}  // namespace hearth::metrics
