#include "controller/simulation/PoolModel.h"

#include <algorithm>

#include "controller/reconcile/sizing/Sizing.h"
#include "controller/simulation/Dice.h"

namespace hearth::controller {
namespace {

/// The interval of looks at a pool if nothing happens, as in PoolReconciler.
constexpr double kLookEvery = 10;
constexpr std::size_t kDrawnAtOnce = 1 << 14;

TimePoint pointAt(double seconds) {
    return TimePoint(std::chrono::hours(1)) + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                  std::chrono::duration<double>(seconds));
}

}  // namespace

std::vector<double> StartModel::draw(std::size_t count) const {
    Dice dice(seed);
    std::vector<double> all(count);
    for (double& each : all) each = dice.logNormal(median_seconds, sigma);
    return all;
}

Moment PoolModel::momentAt(double now) const {
    const auto since = std::chrono::duration<double>(now);
    return {pointAt(now), begin_ + std::chrono::duration_cast<WallTime::duration>(since)};
}

PolicyResult PoolModel::replay(const Trace& trace) {
    begin_ = trace.start;
    durations_ = starts_.draw(kDrawnAtOnce);
    std::size_t next = 0;
    double look = 0;
    while (next < trace.at.size()) {
        const double arrival = trace.at[next];
        const double ends = creating_.empty() ? arrival : creating_.top().ends;
        const double now = std::min({arrival, ends, look});
        if (!creating_.empty() && ends <= now) {
            finish(now);
        } else if (arrival <= now) {
            claim(now);
            ++next;
        }
        reconcile(now);
        look = now + kLookEvery;
    }
    for (const Ready& one : ready_) result_.idle_seconds += trace.seconds() - one.since;
    for (const double since : waiting_) result_.waited_seconds += trace.seconds() - since;
    return result_;
}

void PoolModel::claim(double now) {
    ++result_.claims;
    const bool missed = ready_.empty();
    forecast_.arrived(momentAt(now), 1, missed ? 1 : 0);
    if (missed) {
        ++result_.misses;
        waiting_.push_back(now);
        return;
    }
    result_.idle_seconds += now - ready_.front().since;
    ready_.pop_front();
}

void PoolModel::finish(double now) {
    const Start one = creating_.top();
    creating_.pop();
    forecast_.started(std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(one.ends - one.began)));
    if (waiting_.empty()) {
        ready_.push_back({now, one.began});
    } else {
        result_.waited_seconds += now - waiting_.front();
        waiting_.pop_front();
    }
}

void PoolModel::reconcile(double now) {
    const Moment at = momentAt(now);
    SizingInput input{spec_, at.wall};
    if (spec_.sizing == SizingMode::Predictive) {
        Objective objective = objectiveOf(spec_);
        objective.most = rangeNow(input).max;
        input.outlook = forecast_.look(at, objective);
    }
    const std::size_t wanted = desiredWarm(input);
    const std::size_t target = wantedUnclaimed(input, wanted, waiting_.size());
    while (ready_.size() + creating_.size() < target && creating_.size() < spec_.parallel_creates) {
        creating_.push({now + durations_[result_.made % durations_.size()], now});
        ++result_.made;
    }
    if (ready_.size() > wanted && waiting_.empty()) retire(now, wanted);
}

void PoolModel::retire(double now, std::size_t wanted) {
    std::size_t left = ready_.size();
    std::erase_if(ready_, [&](const Ready& one) {
        if (left <= wanted || now - one.created <= toSeconds(kSurplusKept)) return false;
        result_.idle_seconds += now - one.since;
        --left;
        return true;
    });
}

}  // namespace hearth::controller
