#include "metrics/LogTail.h"

namespace hearth::metrics {
namespace {

/// No event has "=" in its name, so no tenant's name can be an event's.
std::string groupOfLine(std::string_view tenant, std::string_view event) {
    return tenant.empty() ? std::string(event) : "tenant=" + std::string(tenant);
}

}  // namespace

void LogTail::add(std::string_view line, std::string_view tenant, std::string_view event) {
    if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
    bool watched = false;
    {
        const MutexLock lock(mutex_);
        watched = watchers_ > 0;
        lines_.push(groupOfLine(tenant, event), std::string(line), line.size());
    }
    if (watched) changed_.notifyAll();
}

void LogTail::tell(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        {
            const MutexLock lock(mutex_);
            changed_.wait(mutex_, stop, [this]() HEARTH_REQUIRES(mutex_) {
                return watchers_ > 0 && told_ != lines_.last();
            });
            if (watchers_ == 0 || told_ == lines_.last()) continue;
            told_ = lines_.last();
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
    std::vector<Line> found;
    lines_.after(id, most, [&](std::uint64_t each, const std::string& text) {
        found.push_back({each, text});
    });
    return found;
}

std::uint64_t LogTail::before(std::size_t most) const {
    const MutexLock lock(mutex_);
    return lines_.before(most);
}

}  // namespace hearth::metrics
