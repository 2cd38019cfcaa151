#include "controller/simulation/Comparison.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace hearth::controller {
namespace {

PolicyResult ofSize(PoolSpec spec, std::uint32_t size, const StartModel& starts,
                    const Trace& trace) {
    spec.sizing = SizingMode::Static;
    spec.warm_min = size;
    return PoolModel(spec, starts).replay(trace);
}

}  // namespace

double Comparison::ofStatic() const {
    return best_static.idle_seconds > 0 ? predictive.idle_seconds / best_static.idle_seconds : 0;
}

PolicyResult clairvoyant(const PoolSpec& spec, const StartModel& starts, const Trace& trace) {
    PolicyResult result;
    result.claims = result.made = trace.at.size();
    const std::vector<double> durations = starts.draw(trace.at.size());
    // For each slot the beginning of its earliest start so far; before that time it is free.
    std::priority_queue<double> slots;
    for (std::uint32_t i = 0; i < spec.parallel_creates; ++i) slots.push(trace.seconds());
    for (std::size_t i = trace.at.size(); i-- > 0;) {
        const double ends = std::min(trace.at[i], slots.top());
        result.idle_seconds += trace.at[i] - ends;
        slots.pop();
        slots.push(ends - durations[i]);
    }
    return result;
}

Comparison compare(const PoolSpec& spec, const StartModel& starts, const Trace& trace) {
    Comparison out;
    out.trace = trace.name;
    PoolSpec predicted = spec;
    predicted.sizing = SizingMode::Predictive;
    out.predictive = PoolModel(predicted, starts).replay(trace);
    std::uint32_t low = 0;
    std::uint32_t high = spec.warm_max;
    while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        const bool enough = ofSize(spec, middle, starts, trace).misses <= out.predictive.misses;
        (enough ? high : low) = enough ? middle : middle + 1;
    }
    out.static_size = low;
    out.best_static = ofSize(spec, low, starts, trace);
    out.clairvoyant = clairvoyant(spec, starts, trace);
    return out;
}

}  // namespace hearth::controller
