#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "base/Clock.h"
#include "base/Fd.h"
#include "base/Mutex.h"
#include "metrics/Log.h"

namespace hearth::metrics {

/// The fate of lines: a failed write is repeated, a lost line is never written.
enum class LineFate { Written, Failed, Lost };

struct LineFileSettings {
    std::string path;  ///< empty: no line is kept
    mode_t mode = 0600;
    std::string name;   ///< in errors: "the audit log"
    std::string event;  ///< prefix of the log's events: "audit" gives audit.failed
    /// How long a first line waits for other lines that are written with it.
    std::chrono::milliseconds gather{0};
    /// Is called for each line, and for each failed write; any thread, must not block.
    std::function<void(LineFate)> count;
};

/// An append-only file of lines. add() only queues; one thread writes whole lines, and reopens the
/// file if it was renamed or removed (checked at most once a second) or if reopen() requests it.
/// Failed writes are counted, logged once and repeated; lines beyond kMost are lost. Thread-safe.
class LineFile {
public:
    /// The most bytes that wait.
    static constexpr std::size_t kMost = 8U << 20U;

    /// Throws system_error if the file cannot be opened now.
    LineFile(LineFileSettings settings, const Clock& clock, Log& log);
    /// Writes the queued lines first, for five seconds at most.
    ~LineFile();
    LineFile(const LineFile&) = delete;
    LineFile& operator=(const LineFile&) = delete;

    bool enabled() const { return !settings_.path.empty(); }
    /// Adds one line with its line break.
    void add(std::string_view line);
    /// Opens the file again before the next line; for SIGHUP.
    void reopen();
    /// Waits until all lines queued before have been written. False: not in time.
    bool flush(std::chrono::milliseconds patience);

    /// Opens a file to append to. A new one has exactly this mode; no link is followed.
    static Fd open(const std::string& path, mode_t mode);

private:
    void work();
    bool open();
    bool moved() const;
    /// Removes the written bytes from `batch`; returns 0, or the error of the failed write.
    int append(std::string& batch);
    /// True if all of it was written; `done` is the number of bytes written.
    bool put(std::string_view bytes, std::size_t& done) const;
    void failed(const char* what, int error);

    const LineFileSettings settings_;
    const Clock& clock_;
    Log& log_;
    Fd file_;               ///< used by the writing thread
    TimePoint looked_at_;   ///< likewise
    bool failing_ = false;  ///< likewise: logged once, until it works again
    bool torn_ = false;     ///< likewise: the file ends within a line
    bool due_ = false;      ///< likewise: opening again failed, and must be repeated
    Mutex mutex_;
    Condition changed_;
    std::string queue_ HEARTH_GUARDED_BY(mutex_);
    std::uint64_t added_ HEARTH_GUARDED_BY(mutex_) = 0;    ///< bytes that were ever queued
    std::uint64_t written_ HEARTH_GUARDED_BY(mutex_) = 0;  ///< how many of them were written
    int hurried_ HEARTH_GUARDED_BY(mutex_) = 0;            ///< number of waiters in flush()
    bool reopen_ HEARTH_GUARDED_BY(mutex_) = false;
    bool stopping_ HEARTH_GUARDED_BY(mutex_) = false;
    std::jthread thread_;
};

}  // namespace hearth::metrics
