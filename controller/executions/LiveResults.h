#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/Mutex.h"
#include "controller/contract/RichResults.h"

namespace hearth::controller {

/// The results of one running execution, in order. A long one waits to be read, and so do the
/// results after it: the thread that brings it reads all agents, and a flood of pictures would
/// delay every tenant. Thread-safe.
class LiveResults {
public:
    /// Counts the bytes of a result while it is kept; null: there is no room for it, and it is
    /// dropped.
    using Count = std::function<std::shared_ptr<void>(std::uint64_t bytes)>;

    /// A longer result waits, if another thread can read it.
    static constexpr std::size_t kReadAtOnce = 4U << 10U;

    explicit LiveResults(Count count) : count_(std::move(count)) {}

    /// Takes a result that came after `behind` bytes of output. Called by one thread at a time.
    void add(std::string_view json, std::uint64_t behind);
    /// Reads the result that has waited longest; does nothing while another thread reads one.
    void readNext();
    /// True if results wait to be read.
    bool waiting() const;
    /// Returns how much of `output` bytes may be shown: up to the first result that still waits,
    /// because each result has a place in the output.
    std::uint64_t showable(std::uint64_t output) const;

    /// Returns the results that were read.
    std::vector<ResultPtr> all() const;
    /// Null past the last one.
    ResultPtr at(std::size_t index) const;
    std::size_t count() const;
    /// The size of their documents.
    std::uint64_t bytes() const;
    /// How many were dropped.
    std::uint64_t dropped() const;
    /// The position at which the agent's next result begins.
    std::uint64_t end() const;
    /// Drops the results: they are read from elsewhere now.
    void clear();

private:
    struct Unread {
        std::string json;
        std::uint64_t behind = 0;
        std::shared_ptr<void> counted;
    };

    std::shared_ptr<void> counted(std::uint64_t bytes, bool& fits) const;
    void keep(ResultPtr read, std::shared_ptr<void> counted) HEARTH_REQUIRES(mutex_);

    const Count count_;
    mutable Mutex mutex_;
    std::deque<std::shared_ptr<Unread>> unread_ HEARTH_GUARDED_BY(mutex_);
    bool reading_ HEARTH_GUARDED_BY(mutex_) = false;  ///< true while the first one is read
    std::vector<ResultPtr> results_ HEARTH_GUARDED_BY(mutex_);
    std::vector<std::shared_ptr<void>> counted_ HEARTH_GUARDED_BY(mutex_);
    std::size_t values_ HEARTH_GUARDED_BY(mutex_) = 0;   ///< in all results_
    std::uint64_t bytes_ HEARTH_GUARDED_BY(mutex_) = 0;  ///< in all results_
    std::uint64_t end_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::uint64_t dropped_ HEARTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace hearth::controller
