#include "api/cli/top/OverviewPoller.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "api/cli/top/ScreenText.h"
#include "api/cli/top/TopTable.h"
#include "base/Error.h"

namespace hearth::cli {
namespace {

constexpr std::chrono::seconds kSilence{10};  ///< then a silent server counts as lost
constexpr std::chrono::seconds kLongestDelay{
    15};  ///< between two tries, if the interval is shorter

}  // namespace

OverviewPoller::OverviewPoller(const Options& options, std::chrono::milliseconds interval)
    : remote_(options, {.silence = kSilence, .stop = &stopping_}),
      reader_(remote_),
      changed_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      news_{.overview = reader_.seen(), .detail = {}},
      interval_(interval) {
    if (!changed_) throwErrno("eventfd");
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

OverviewPoller::~OverviewPoller() {
    stopping_ = true;
    thread_.request_stop();
    thread_.join();
}

OverviewPoller::News OverviewPoller::take() {
    std::uint64_t count = 0;
    const ssize_t got = ::read(changed_.get(), &count, sizeof(count));
    static_cast<void>(got);  // only clears it
    const MutexLock lock(mutex_);
    if (ended_) std::rethrow_exception(ended_);
    News news = news_;
    news_.remark.clear();
    return news;
}

void OverviewPoller::pace(std::chrono::milliseconds interval, bool paused) {
    const MutexLock lock(mutex_);
    if (paused_ && !paused) at_once_ = true;
    interval_ = interval;
    paused_ = paused;
    order_.notifyAll();
}

void OverviewPoller::follow(const std::string& workspace) {
    const MutexLock lock(mutex_);
    followed_ = workspace;
    news_.detail = {.id = workspace};
    news_.gone = false;
    at_once_ = !workspace.empty() || !paused_;
    order_.notifyAll();
}

void OverviewPoller::end(const std::string& workspace) {
    const MutexLock lock(mutex_);
    endings_.push_back(workspace);
    order_.notifyAll();
}

void OverviewPoller::run(const std::stop_token& stop) noexcept {
    try {
        while (wait(stop)) {
            obey();
            look();
            tell();
        }
    } catch (...) {
        {
            const MutexLock lock(mutex_);
            ended_ = std::current_exception();
        }
        tell();
    }
}

std::chrono::milliseconds OverviewPoller::delay() const {
    if (failures_ == 0) return interval_;
    const std::chrono::milliseconds longest =
        std::max<std::chrono::milliseconds>(interval_, kLongestDelay);
    return std::min(longest, interval_ * (1U << std::min(failures_ - 1, 6U)));
}

bool OverviewPoller::wait(const std::stop_token& stop) {
    const MutexLock lock(mutex_);
    const auto ordered = [this]() HEARTH_REQUIRES(mutex_) { return at_once_ || !endings_.empty(); };
    while (!stop.stop_requested() && !ordered()) {
        const auto next = looked_ + delay();
        if (!paused_ && Steady::now() >= next) break;
        const auto before = std::pair(paused_, interval_);
        const auto changed = [&]() HEARTH_REQUIRES(mutex_) {
            return ordered() || before != std::pair(paused_, interval_);
        };
        if (paused_) {
            order_.wait(mutex_, stop, changed);
        } else {
            order_.waitUntil(mutex_, stop, next, changed);
        }
    }
    return !stop.stop_requested();
}

void OverviewPoller::obey() {
    const Utf8Locale utf8;
    std::vector<std::string> endings;
    {
        const MutexLock lock(mutex_);
        endings.swap(endings_);
        if (!endings.empty() && !paused_) at_once_ = true;
    }
    for (const std::string& workspace : endings) {
        std::string remark;
        try {
            reader_.end(workspace);
            remark = "ended " + shortId(workspace);
        } catch (const RemoteError& e) {
            if (e.status() == 401) throw;
            remark = std::string("not ended: ") + e.what();
        } catch (const Error& e) {
            remark = std::string("not ended: ") + e.what();
        }
        const MutexLock lock(mutex_);
        news_.remark = remark;
    }
}

void OverviewPoller::look() {
    WorkspaceDetail detail;
    {
        const MutexLock lock(mutex_);
        if (paused_ && !at_once_) return;
        at_once_ = false;
        detail = news_.detail;
    }
    try {
        if (detail.id.empty()) {
            reader_.read(std::chrono::system_clock::now());
        } else {
            reader_.open(detail);
        }
        const MutexLock lock(mutex_);
        news_.overview = reader_.seen();
        if (followed_ == detail.id) news_.detail = std::move(detail);
        news_.failure.clear();
        failures_ = 0;
        looked_ = Steady::now();
    } catch (const RemoteError& e) {
        if (refusesCaller(e)) throw;
        if (detail.id.empty() || exitStatusOf(e) != kNotFound) return failed(e.what());
        const MutexLock lock(mutex_);
        if (followed_ == detail.id) news_.gone = true;
        looked_ = Steady::now();
    } catch (const Error& e) {
        failed(e.what());
    }
}

void OverviewPoller::failed(const std::string& why) {
    reader_.forget();
    const MutexLock lock(mutex_);
    ++failures_;
    looked_ = Steady::now();
    news_.failure = why;
    news_.next = looked_ + delay();
}

void OverviewPoller::tell() noexcept {
    const std::uint64_t one = 1;
    const ssize_t written = ::write(changed_.get(), &one, sizeof(one));
    static_cast<void>(written);  // an eventfd always takes eight bytes
}

}  // namespace hearth::cli
