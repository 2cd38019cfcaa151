#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>

#include "base/Mutex.h"
#include "metrics/Log.h"
#include "metrics/LogOutput.h"
#include "metrics/Metrics.h"

namespace hearth::metrics {

/// Keeps the log's lines in order while its reader has stalled, and writes them when it reads
/// again. add() never blocks on the reader. The buffer is bounded: a line that does not fit is
/// dropped and counted, and a `log.dropped` line marks the gap in the log. Thread-safe.
class LogWriter {
public:
    static constexpr std::size_t kMost = 256U << 10U;

    LogWriter(const LogOutput& output, Metrics& metrics, std::size_t most = kMost,
              LogFormat format = LogFormat::Logfmt);
    /// Writes the remaining lines, for one second at most.
    ~LogWriter();
    LogWriter(const LogWriter&) = delete;
    LogWriter& operator=(const LogWriter&) = delete;

    LogFormat format() const { return format_; }
    /// Adds one line with its line break; written at once if the reader takes it.
    void add(std::string line);

private:
    struct Line {
        std::string text;
        std::uint64_t missing = 0;  ///< it reports this many dropped lines
    };

    void work(const std::stop_token& stop);
    void push(Line line) HEARTH_REQUIRES(mutex_);
    void tellDropped() HEARTH_REQUIRES(mutex_);
    void drain() HEARTH_REQUIRES(mutex_);
    void loseAll() HEARTH_REQUIRES(mutex_);

    const LogOutput& output_;
    Metrics& metrics_;
    const std::size_t most_;
    const LogFormat format_;
    Mutex mutex_;
    StoppableCondition stalled_;
    std::deque<Line> lines_ HEARTH_GUARDED_BY(mutex_);     // the first may be a partial one
    std::size_t bytes_ HEARTH_GUARDED_BY(mutex_) = 0;      // size of lines_
    std::uint64_t dropped_ HEARTH_GUARDED_BY(mutex_) = 0;  // not reported yet
    std::jthread thread_;
};

}  // namespace hearth::metrics
