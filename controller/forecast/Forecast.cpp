#include "controller/forecast/Forecast.h"

#include <algorithm>
#include <cmath>

#include "controller/forecast/Demand.h"

namespace hearth::controller {
namespace {

/// The weight of the next slower average, as a share of the average's own weight.
constexpr double kPrior = 0.25;
/// A pool without history counts as silent for this many seconds.
constexpr double kSilence = 30;
constexpr double kLeastWindow = 0.5;
/// The burstiness is remembered for this many expected claims.
constexpr double kClaimsKept = 2000;
/// The part of the averages' merits that the next window keeps, and the largest difference.
constexpr double kMeritKept = 0.9995;
constexpr double kMostMerit = 50;
/// The aim, as a share of the objective, so that chance does not exceed it.
constexpr double kAim = 0.85;
/// The share is remembered for this many allowed misses; kMissesPerStep of them: leave() * e.
constexpr double kMissesKept = 300;
/// Misses that a pool is assumed to have had at first, so it begins careful.
constexpr double kMissesAtFirst = 10;
constexpr double kMissesPerStep = 4;
/// Exponents of e.
constexpr double kLeastLeave = -4;
constexpr double kMostLeave = 0.5;
constexpr auto kLowerEvery = std::chrono::seconds(10);
constexpr std::size_t kLowerShare = 8;
/// A longer time between two calls means that the machine stood still.
constexpr double kMostPassed = 86'400;

}  // namespace

void Forecast::Average::pass(double time) {
    const double kept = std::exp(-time / lasts);
    claims *= kept;
    seconds = seconds * kept + lasts * (1 - kept);
}

void Forecast::passTo(const Moment& at) {
    if (!last_) {
        last_ = at.now;
        for (Average& each : averages_) each.seconds = std::min(kSilence, each.lasts);
        long_.seconds = kSilence;
    }
    const double time = std::clamp(toSeconds(at.now - *last_), 0.0, kMostPassed);
    last_ = std::max(*last_, at.now);
    for (Average& each : averages_) each.pass(time);
    long_.pass(time);
    window_seconds_ += time;
    const double length = std::max(leads_.mean(), kLeastWindow);
    const double windows = std::floor(window_seconds_ / length);
    if (windows >= 1) judgeWindow(at, length, windows - 1);
}

void Forecast::judgeWindow(const Moment& at, double length, double more) {
    const double expected = window_rate_ * length;
    const double difference = window_claims_ - expected;
    surprise_ += difference * difference + more * expected * expected;
    expectation_ += (1 + more) * expected;
    const double kept = std::min(1.0, kClaimsKept / expectation_);
    surprise_ *= kept;
    expectation_ *= kept;
    for (Average& each : averages_) {
        if (each.expected > 0) {
            each.merit += window_claims_ * std::log(each.expected * length) -
                          (1 + more) * each.expected * length;
        }
    }
    double best = averages_[0].merit;
    for (const Average& each : averages_) best = std::max(best, each.merit);
    const std::array<Rate, kAverages> now = rates(at.wall);
    for (std::size_t i = 0; i < kAverages; ++i) {
        averages_[i].merit = std::max((averages_[i].merit - best) * kMeritKept, -kMostMerit);
        averages_[i].expected = now[i].per_second;
    }
    window_rate_ = blend(at.wall).per_second;
    window_seconds_ = std::fmod(window_seconds_, length);
    window_claims_ = 0;
}

std::array<Forecast::Rate, Forecast::kAverages> Forecast::rates(WallTime at) const {
    std::array<Rate, kAverages> out;
    const Average& slowest = averages_.back();
    double before = day_.rate(at).value_or(slowest.claims / slowest.seconds);
    for (std::size_t i = kAverages; i-- > 0;) {
        const double prior = averages_[i].lasts * kPrior;
        out[i].claims = averages_[i].claims + prior * before;
        out[i].per_second = out[i].claims / (averages_[i].seconds + prior);
        before = out[i].per_second;
    }
    return out;
}

Forecast::Rate Forecast::blend(WallTime at) const {
    const std::array<Rate, kAverages> all = rates(at);
    Rate out;
    double weights = 0;
    for (std::size_t i = 0; i < kAverages; ++i) {
        const double weight = std::exp(averages_[i].merit);
        out.per_second += weight * all[i].per_second;
        out.claims += weight * all[i].claims;
        weights += weight;
    }
    return {out.per_second / weights, out.claims / weights};
}

void Forecast::arrived(const Moment& at, std::uint64_t claims, std::uint64_t missed) {
    passTo(at);
    const auto count = static_cast<double>(claims);
    for (Average& each : averages_) each.claims += count;
    long_.claims += count;
    day_.add(at.wall, count);
    window_claims_ += count;
    claims_ += count;
    missed_ += static_cast<double>(missed);
}

double Forecast::leave(double miss_rate) const {
    const double steps = (kAim * miss_rate * claims_ - missed_ - kMissesAtFirst) / kMissesPerStep;
    return std::exp(std::clamp(steps, kLeastLeave, kMostLeave));
}

Outlook Forecast::look(const Moment& at, const Objective& objective) {
    arrived(at, 0, 0);
    if (const double kept = kMissesKept / objective.miss_rate; claims_ > kept) {
        missed_ *= kept / claims_;
        claims_ = kept;
    }
    Outlook out;
    out.lead_seconds = leads_.mean();
    out.missed = claims_ > 0 ? missed_ / claims_ : 0;
    const auto ahead = std::chrono::duration_cast<WallTime::duration>(
        std::chrono::duration<double>(out.lead_seconds));
    const Rate rate = blend(at.wall + ahead);
    out.per_second = rate.per_second;

    Demand demand;
    demand.mean = out.per_second * out.lead_seconds;
    const double burstiness = std::max(1.0, surprise_ / expectation_);
    // The rate itself was learned from this many claims only.
    demand.variance =
        std::max(demand.mean * burstiness,
                 demand.mean + demand.mean * demand.mean / std::max(rate.claims, 1e-9));
    demand.slots = std::max(1U, objective.slots);
    demand.slot_variation = (burstiness + leads_.dispersion()) / 2;
    // Misses are spread evenly over time, not over claims: the last sandbox is worth as much at
    // noon as at night, and a quiet hour may miss more of its few claims.
    const double misses_per_second =
        objective.miss_rate * long_.claims / long_.seconds * leave(objective.miss_rate);
    std::size_t wanted = 0;
    if (!leads_.empty() && out.per_second > misses_per_second) {
        wanted = demand.sizeFor(misses_per_second * out.lead_seconds, objective.most);
    }
    if (wanted >= held_) {
        held_ = wanted;
        lowered_ = at.now;
    } else if (at.now - lowered_ >= kLowerEvery) {
        held_ = std::max(wanted, held_ - std::max<std::size_t>(1, held_ / kLowerShare));
        lowered_ = at.now;
    }
    out.target = held_;
    return out;
}

}  // namespace hearth::controller
