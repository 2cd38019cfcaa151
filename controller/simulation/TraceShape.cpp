#include "controller/simulation/TraceShape.h"

#include <algorithm>
#include <array>

#include "controller/simulation/Dice.h"

namespace hearth::controller {
namespace {

constexpr double kHour = 3600;
constexpr double kDay = 24 * kHour;

// Diurnal: the rate in each hour of a working day, as a fraction of the highest.
constexpr std::array<double, 24> kWorkingDay = {.04, .03, .03, .03, .03, .05, .10, .25,
                                                .60, .90, 1.0, .95, .80, .85, .95, 1.0,
                                                .95, .80, .50, .30, .22, .15, .10, .06};
constexpr double kPeakRate = 2;
constexpr double kWeekend = 0.3;
constexpr double kDaySpread = 0.15;    // sigma of a day's level
constexpr double kLatest = 20.0 * 60;  // how much sooner or later a day may begin

// Bursty: a Hawkes process. Each claim has 0.95 direct followers on average.
constexpr double kBatchRate = 0.025 / 2;
constexpr double kBatchMean = 2;
constexpr double kFollowers = 0.95;
constexpr double kExcitedSeconds = 30;

// Rare: the mean times to the next claim.
constexpr double kSoonShare = 0.3;
constexpr double kSoonSeconds = 10;
constexpr double kLongSeconds = 300;

class WorkingDays {
public:
    explicit WorkingDays(Dice& dice) : dice_(dice) { next(); }

    double rate(double at) {
        while (at >= (day_ + 1) * kDay) {
            ++day_;
            next();
        }
        double of_day = std::fmod(at - day_ * kDay + shift_ + kDay, kDay) / kHour;
        const auto hour = static_cast<std::size_t>(of_day);
        const double between = of_day - static_cast<double>(hour);
        const double relative = kWorkingDay[hour] * (1 - between) +
                                kWorkingDay[(hour + 1) % kWorkingDay.size()] * between;
        const int weekday = static_cast<int>(day_) % 7;
        return kPeakRate * level_ * relative * (weekday >= 5 ? kWeekend : 1);
    }
    double most() const { return kPeakRate * level_; }

private:
    void next() {
        level_ = dice_.logNormal(1, kDaySpread);
        shift_ = (2 * dice_.uniform() - 1) * kLatest;
    }

    Dice& dice_;
    double day_ = 0;
    double level_ = 1;
    double shift_ = 0;
};

void diurnal(Dice& dice, std::size_t claims, std::vector<double>& at) {
    WorkingDays days(dice);
    double now = 0;
    while (at.size() < claims) {
        // Thinning; the level changes only at midnight, when the rate is low.
        const double most = days.most();
        now += dice.exponential(1 / most);
        if (dice.uniform() * most <= days.rate(now)) at.push_back(now);
    }
}

void bursty(Dice& dice, std::size_t claims, std::vector<double>& at) {
    double now = 0;
    double excited = 0;  // the present rate of followers
    double next_batch = dice.exponential(1 / kBatchRate);
    const double jump = kFollowers / kExcitedSeconds;
    while (at.size() < claims) {
        const double wait = excited > 0 ? dice.exponential(1 / excited) : kDay;
        if (now + wait >= next_batch) {
            excited *= std::exp(-(next_batch - now) / kExcitedSeconds);
            now = next_batch;
            for (std::size_t left = dice.geometric(kBatchMean); left > 0; --left) {
                at.push_back(now);
                excited += jump;
            }
            next_batch = now + dice.exponential(1 / kBatchRate);
            continue;
        }
        now += wait;
        const double before = excited;
        excited *= std::exp(-wait / kExcitedSeconds);
        if (dice.uniform() * before > excited) continue;
        at.push_back(now);
        excited += jump;
    }
    at.resize(claims);
}

void rare(Dice& dice, std::size_t claims, std::vector<double>& at) {
    double now = 0;
    while (at.size() < claims) {
        now += dice.exponential(dice.uniform() <= kSoonShare ? kSoonSeconds : kLongSeconds);
        at.push_back(now);
    }
}

}  // namespace

std::size_t usualClaims(TraceShape shape) {
    return shape == TraceShape::Diurnal ? 500'000 : 100'000;  // the first: about a week
}

Trace makeTrace(TraceShape shape, std::uint64_t seed, std::size_t claims) {
    Trace trace{std::string(kTraceShapes.of(shape)) + " " + std::to_string(seed), traceEpoch(), {}};
    trace.at.reserve(claims);
    Dice dice(seed);
    switch (shape) {
        case TraceShape::Diurnal:
            diurnal(dice, claims, trace.at);
            break;
        case TraceShape::Bursty:
            bursty(dice, claims, trace.at);
            break;
        case TraceShape::Rare:
            rare(dice, claims, trace.at);
            break;
    }
    return trace;
}

}  // namespace hearth::controller
