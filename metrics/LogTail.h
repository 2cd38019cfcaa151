#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/Mutex.h"
#include "base/Subscribers.h"
#include "base/tenants/FairBuffer.h"

namespace hearth::metrics {

/// The last lines of the log, for readers through the API. If they have too many bytes, the tenant
/// with the most loses its oldest line; lines without a tenant count by their event. Thread-safe.
class LogTail {
public:
    struct Line {
        std::uint64_t id = 0;  ///< from 1; a gap where lines were dropped
        std::string text;      ///< without its line break
    };

    explicit LogTail(std::size_t most_bytes = 1U << 20U) : lines_(most_bytes) {}
    LogTail(const LogTail&) = delete;
    LogTail& operator=(const LogTail&) = delete;

    /// `tenant`: empty if the line names none; then its event counts.
    void add(std::string_view line, std::string_view tenant = {}, std::string_view event = {});
    /// At most `most` lines with a greater id, oldest first.
    std::vector<Line> after(std::uint64_t id, std::size_t most) const;
    /// The id after which `most` lines remain.
    std::uint64_t before(std::size_t most) const;
    /// Like Subscribers::add(). A separate thread calls `changed`: a logging one may hold any lock.
    std::shared_ptr<void> subscribe(std::function<void()> changed);

private:
    void tell(const std::stop_token& stop);

    mutable Mutex mutex_;
    FairBuffer<std::string> lines_ HEARTH_GUARDED_BY(mutex_);
    std::uint64_t told_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::size_t watchers_ HEARTH_GUARDED_BY(mutex_) = 0;
    StoppableCondition changed_;
    Subscribers subscribers_;
    std::jthread thread_ HEARTH_GUARDED_BY(mutex_);  ///< runs once somebody watches
};

}  // namespace hearth::metrics
