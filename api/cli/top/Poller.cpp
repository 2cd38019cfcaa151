#include "api/cli/top/Poller.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "base/Error.h"
#include "base/ScopeExit.h"

namespace hearth::cli {
namespace {

constexpr std::chrono::seconds kSilence{10};  ///< then a silent server counts as lost
constexpr std::chrono::milliseconds kLongestDelay{
    15'000};  ///< between two tries, if the interval is shorter

std::chrono::milliseconds delay(std::chrono::milliseconds interval, unsigned failures) {
    if (failures == 0) return interval;
    return std::min(std::max(interval, kLongestDelay),
                    interval * (1U << std::min(failures - 1, 6U)));
}

}  // namespace

Poller::Poller(const Options& options)
    : remote_(options, {.silence = kSilence, .stop = &stopping_}),
      overview_{.url = remote_.url()},
      changed_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!changed_) throwErrno("eventfd");
}

std::chrono::milliseconds Poller::follow(TopState& state) {
    const std::string opened = state.mode == TopMode::Detail ? state.target : "";
    if (opened != overview_.opened.id) {
        overview_.opened = {.id = opened};
        at_once_ = !opened.empty() || !state.paused;
    }
    at_once_ = at_once_ || (paused_ && !state.paused);
    paused_ = state.paused;
    const auto next = looked_ + delay(state.interval, failures_);
    const auto left =
        std::max(std::chrono::ceil<std::chrono::milliseconds>(next - Steady::now()), {});
    overview_.retry_in = std::chrono::ceil<std::chrono::seconds>(left);
    const bool due =
        at_once_ || !state.endings.empty() || (!paused_ && left == std::chrono::milliseconds(0));
    if (due && !look_.valid()) begin(std::exchange(state.endings, {}));
    return look_.valid() || paused_ ? std::chrono::milliseconds::max() : left;
}

void Poller::begin(std::vector<std::string> endings) {
    Look look{overview_, std::move(endings), at_once_ || !paused_};
    look.overview.failure.clear();
    if (failures_ > 0) look.overview.version.clear();  // a different server may answer now
    at_once_ = false;
    look_ = std::async(std::launch::async, [this, look = std::move(look)]() mutable {
        const ScopeExit end([this] { ::eventfd_write(changed_.get(), 1); });
        obey(look);
        if (look.reads) read(look);
        return std::move(look);
    });
}

void Poller::obey(Look& look) {
    for (const std::string& workspace : look.endings) {
        try {
            endWorkspace(remote_, workspace);
            look.remark = "ended " + shortId(workspace);
        } catch (const RemoteError& e) {
            if (e.status() == 401) throw;
            look.remark = std::string("not ended: ") + e.what();
        } catch (const Error& e) {
            look.remark = std::string("not ended: ") + e.what();
        }
    }
}

void Poller::read(Look& look) {
    WorkspaceDetail& opened = look.overview.opened;
    try {
        if (opened.id.empty()) {
            cli::read(remote_, look.overview, std::chrono::system_clock::now());
        } else {
            cli::read(remote_, opened);
        }
    } catch (const RemoteError& e) {
        // The token is wrong or lacks a right: asking again does not help.
        if (e.status() == 401 || e.status() == 403) throw;
        look.gone = !opened.id.empty() && exitStatusOf(e) == kNotFound;
        look.overview.failure = e.what();
    } catch (const Error& e) {
        look.overview.failure = e.what();
    }
}

void Poller::take(TopState& state) {
    eventfd_t count = 0;
    ::eventfd_read(changed_.get(), &count);
    Look look = look_.get();
    if (!look.remark.empty()) state.message = cellText(look.remark);
    if (!look.reads) return;
    looked_ = Steady::now();
    const bool current = look.overview.opened.id == overview_.opened.id;
    if (look.gone) {
        if (!current) return;
        state.mode = TopMode::Browse;
        state.asks = false;
        state.message = "workspace " + shortId(state.target) + " has ended";
    } else if (look.overview.failure.empty()) {
        if (!current) look.overview.opened = overview_.opened;
        overview_ = std::move(look.overview);
        failures_ = 0;
    } else {
        overview_.failure = look.overview.failure;
        ++failures_;
    }
}

}  // namespace hearth::cli
