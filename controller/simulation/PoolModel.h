#pragma once

#include <cstdint>
#include <deque>
#include <queue>
#include <vector>

#include "controller/forecast/Forecast.h"
#include "controller/simulation/Trace.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::controller {

/// The durations of the starts in a simulated pool.
struct StartModel {
    double median_seconds = 3;
    double sigma = 0.25;  ///< of the durations' logarithm
    std::uint64_t seed = 1;

    /// The durations of the first `count` sandboxes; the same for every policy.
    std::vector<double> draw(std::size_t count) const;
};

/// The result of a policy on a trace.
struct PolicyResult {
    std::uint64_t claims = 0;
    std::uint64_t misses = 0;   ///< claims that found no ready sandbox
    double idle_seconds = 0;    ///< of ready sandboxes, until their claim or retirement
    double waited_seconds = 0;  ///< of the claims that missed
    std::uint64_t made = 0;     ///< sandboxes
    double missRate() const {
        return claims == 0 ? 0 : static_cast<double>(misses) / static_cast<double>(claims);
    }
};

/// One pool on a fake clock, sized by the server's own rules: refill limited to parallelCreates,
/// claims that wait in line, surplus retired, schedules. Not modelled: failures, maxAge and the end
/// of workspaces, and so limits.members.
class PoolModel {
public:
    PoolModel(const PoolSpec& spec, const StartModel& starts) : spec_(spec), starts_(starts) {}
    PolicyResult replay(const Trace& trace);

private:
    struct Ready {
        double since;
        double created;
    };
    struct Start {
        double ends;
        double began;
        bool operator>(const Start& other) const { return ends > other.ends; }
    };

    void claim(double now);
    void finish(double now);
    void reconcile(double now);
    void retire(double now, std::size_t wanted);
    Moment momentAt(double now) const;

    const PoolSpec spec_;
    const StartModel starts_;
    WallTime begin_{};
    Forecast forecast_;
    std::deque<Ready> ready_;
    std::priority_queue<Start, std::vector<Start>, std::greater<>> creating_;
    std::deque<double> waiting_;
    std::vector<double> durations_;
    PolicyResult result_;
};

}  // namespace hearth::controller
