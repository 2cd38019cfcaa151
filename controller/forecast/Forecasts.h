#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/Mutex.h"
#include "controller/forecast/Forecast.h"
#include "controller/forecast/TraceRecorder.h"

namespace hearth::controller {

/// The forecast of each pool, fed by its reconciler and its sandboxes' starts. Thread-safe.
class Forecasts {
public:
    /// `traces`: the directory for recorded traces; empty: none.
    explicit Forecasts(std::string traces) : recorder_(std::move(traces)) {}

    /// The counts of a pool so far.
    struct Seen {
        std::uint64_t claims = 0;
        std::uint64_t missed = 0;  ///< claims that found no ready sandbox
        std::size_t ready = 0;     ///< sandboxes at present
    };
    struct News {
        Outlook outlook;
        double idle_seconds = 0;  ///< of ready sandboxes, since the last look
        bool recorded = true;     ///< false: the trace could not be written
    };
    News look(const std::string& pool, const Moment& at, const Objective& objective,
              const Seen& seen);
    /// Ignored for a pool without a look(); a start may end after its pool was forgotten.
    void started(const std::string& pool, std::chrono::nanoseconds took);
    void forget(const std::string& pool);

private:
    struct Entry {
        Forecast forecast;
        Seen seen;
        TimePoint looked{};
    };

    const TraceRecorder recorder_;
    Mutex mutex_;
    std::map<std::string, Entry> pools_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::controller
