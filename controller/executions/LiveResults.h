#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/Mutex.h"
#include "controller/contract/RichResults.h"

namespace hearth::controller {

/// The results of one running execution, in their order. A long one waits to be read, and so do
/// those after it: the thread that brings it reads all agents, and a flood of pictures would hold
/// up every tenant. Thread-safe.
class LiveResults {
public:
    /// Counts the bytes of a result while it is kept; null: there is no room for it, and it is
    /// dropped.
    using Count = std::function<std::shared_ptr<void>(std::uint64_t bytes)>;

    /// A longer one waits, where there is somebody to read it.
    static constexpr std::size_t kReadAtOnce = 4U << 10U;

    /// Before the first result.
    void onCount(Count count) { count_ = std::move(count); }
    /// Takes a result that has come after so many bytes of output. Of one thread at a time.
    void add(std::string_view json, std::uint64_t behind);
    /// Reads the one that has waited longest; nothing while another thread does.
    void readNext();
    /// Whether results wait to be read.
    bool waiting() const;
    /// Of so much output, how much may be shown: not what came after a result that still waits, as
    /// each has a place in the output.
    std::uint64_t showable(std::uint64_t output) const;

    /// Those that were read.
    std::vector<ResultPtr> all() const;
    /// Null past the last one.
    ResultPtr at(std::size_t index) const;
    std::size_t count() const;
    /// Of their documents.
    std::uint64_t bytes() const;
    /// How many were dropped.
    std::uint64_t dropped() const;
    /// Where the agent's next one begins.
    std::uint64_t end() const;
    /// They are read from elsewhere now.
    void clear();

private:
    struct Unread {
        std::string json;
        std::uint64_t behind = 0;
        std::shared_ptr<void> counted;
    };

    std::shared_ptr<void> counted(std::uint64_t bytes, bool& fits) const;
    void keep(ResultPtr read, std::shared_ptr<void> counted) HEARTH_REQUIRES(mutex_);

    Count count_;
    mutable Mutex mutex_;
    std::deque<std::shared_ptr<Unread>> unread_ HEARTH_GUARDED_BY(mutex_);
    bool reading_ HEARTH_GUARDED_BY(mutex_) = false;  ///< the first of them
    std::vector<ResultPtr> results_ HEARTH_GUARDED_BY(mutex_);
    std::vector<std::shared_ptr<void>> counted_ HEARTH_GUARDED_BY(mutex_);
    std::size_t values_ HEARTH_GUARDED_BY(mutex_) = 0;   ///< of all results_
    std::uint64_t bytes_ HEARTH_GUARDED_BY(mutex_) = 0;  ///< of all results_
    std::uint64_t end_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::uint64_t dropped_ HEARTH_GUARDED_BY(mutex_) = 0;
    int refused_ HEARTH_GUARDED_BY(mutex_) = 0;  ///< for their values
};

}  // namespace hearth::controller
