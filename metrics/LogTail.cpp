#include "metrics/LogTail.h"

#include <algorithm>

namespace hearth::metrics {

void LogTail::add(std::string_view line) {
    if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
    bool watched = false;
    {
        const MutexLock lock(mutex_);
        watched = watchers_ > 0;
        lines_.push_back({++last_, std::string(line)});
        bytes_ += line.size();
        while (bytes_ > most_ && lines_.size() > 1) {
            bytes_ -= lines_.front().text.size();
            lines_.pop_front();
        }
    }
    if (watched) changed_.notifyAll();
}

void LogTail::tell(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        {
            const MutexLock lock(mutex_);
            changed_.wait(mutex_, stop, [this]() HEARTH_REQUIRES(mutex_) {
                return watchers_ > 0 && told_ != last_;
            });
            if (watchers_ == 0 || told_ == last_) continue;
            told_ = last_;
        }
        subscribers_.notify();
    }
}

std::shared_ptr<void> LogTail::subscribe(std::function<void()> changed) {
    {
        const MutexLock lock(mutex_);
        ++watchers_;
        if (!thread_.joinable()) {
            thread_ = std::jthread([this](const std::stop_token& stop) { tell(stop); });
        }
    }
    // The subscription lives in the deleter, and ends with it.
    return {this, [this, entry = subscribers_.add(std::move(changed))](void*) {
                const MutexLock lock(mutex_);
                --watchers_;
            }};
}

std::vector<LogTail::Line> LogTail::after(std::uint64_t id, std::size_t most) const {
    const MutexLock lock(mutex_);
    const std::uint64_t first = last_ + 1 - lines_.size();
    const std::size_t skip = id < first ? 0 : static_cast<std::size_t>(id + 1 - first);
    if (skip >= lines_.size()) return {};
    const auto begin = lines_.begin() + static_cast<std::ptrdiff_t>(skip);
    const std::size_t count = std::min(most, lines_.size() - skip);
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

std::uint64_t LogTail::before(std::size_t most) const {
    const MutexLock lock(mutex_);
    return last_ - std::min<std::uint64_t>(most, lines_.size());
}

}  // namespace hearth::metrics
