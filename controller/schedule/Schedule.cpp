#include "controller/schedule/Schedule.h"

#include <algorithm>

namespace hearth::controller {
namespace {

/// A server that was down for longer skips the sweep.
constexpr auto kSweepLate = std::chrono::minutes(10);
/// The most moments without a change that nextChange() passes over.
constexpr int kMostMoments = 64;

void keepEarliest(std::optional<WallTime>& best, std::optional<WallTime> other) {
    if (other && (!best || *other < *best)) best = other;
}

}  // namespace

WarmRange WarmChange::over(WarmRange own) const {
    WarmRange range{min.value_or(own.min), max.value_or(own.max)};
    if (range.min > range.max) (max ? range.min : range.max) = max ? range.max : range.min;
    return range;
}

InForce inForce(const Schedules& schedules, WallTime at) {
    // Windows override the entry that holds until another one of its kind fires.
    InForce lasting;
    InForce window;
    WallTime ended = WallTime::min();
    for (std::size_t i = 0; i < schedules.size(); ++i) {
        const Schedule& one = schedules[i];
        if (!one.warm) continue;
        const std::optional<WallTime> fired = one.cron.last(one.zone, at);
        if (!fired) continue;
        if (one.duration.count() > 0 && *fired + one.duration <= at) {
            ended = std::max(ended, *fired + one.duration);
            continue;
        }
        InForce& kind = one.duration.count() > 0 ? window : lasting;
        if (!kind.entry || *fired >= kind.since) kind = {i, *fired};
    }
    if (window.entry && (!lasting.entry || window.since >= lasting.since)) return window;
    if (lasting.entry) return lasting;
    return {std::nullopt, ended};
}

WarmRange warmRange(const Schedules& schedules, WarmRange own, WallTime at) {
    if (schedules.empty()) return own;
    const InForce now = inForce(schedules, at);
    return now.entry ? schedules[*now.entry].warm->over(own) : own;
}

std::optional<WallTime> nextMoment(const Schedules& schedules, WallTime after) {
    std::optional<WallTime> best;
    for (const Schedule& one : schedules) {
        keepEarliest(best, one.cron.next(one.zone, after));
        if (!one.warm || one.duration.count() == 0) continue;
        const std::optional<WallTime> fired = one.cron.last(one.zone, after);
        if (fired && *fired + one.duration > after) keepEarliest(best, *fired + one.duration);
    }
    return best;
}

std::optional<WallTime> nextChange(const Schedules& schedules, WallTime after) {
    const std::optional<std::size_t> now = inForce(schedules, after).entry;
    std::optional<WallTime> at = nextMoment(schedules, after);
    for (int i = 0; at && i < kMostMoments; ++i) {
        if (inForce(schedules, *at).entry != now) return at;
        at = nextMoment(schedules, *at);
    }
    return std::nullopt;
}

std::optional<Sweep> sweepDue(const Schedules& schedules, WallTime at) {
    std::optional<Sweep> due;
    for (std::size_t i = 0; i < schedules.size(); ++i) {
        if (!schedules[i].sweep) continue;
        const std::optional<WallTime> fired = schedules[i].cron.last(schedules[i].zone, at);
        if (fired && at - *fired <= kSweepLate && (!due || *fired > due->at)) due = {i, *fired};
    }
    return due;
}

}  // namespace hearth::controller
