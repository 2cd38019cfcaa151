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

/// The fate of lines: a write that failed is repeated, a line that was lost never comes.
enum class LineFate { Written, Failed, Lost };

struct LineFileSettings {
    std::string path;  ///< empty: no line is kept
    mode_t mode = 0600;
    std::string name;   ///< in errors: "the audit log"
    std::string event;  ///< of the log's events: "audit" makes audit.failed
    /// A first line waits so long for others that are written with it.
    std::chrono::milliseconds gather{0};
    /// Told of each line, and of each write that failed; any thread, must not block.
    std::function<void(LineFate)> count;
};

/// An append-only file of lines. add() only queues; one thread writes whole lines, and reopens the
/// file when it was renamed or removed (checked at most once a second) or when reopen() asks.
/// Failed writes are counted, logged once and repeated; lines beyond kMost are lost. Thread-safe.
class LineFile {
public:
    /// Bytes that wait at most.
    static constexpr std::size_t kMost = 8U << 20U;

    /// Throws system_error if the file cannot be opened now.
    LineFile(LineFileSettings settings, const Clock& clock, Log& log);
    /// Writes what is queued first, for five seconds at most.
    ~LineFile();
    LineFile(const LineFile&) = delete;
    LineFile& operator=(const LineFile&) = delete;

    bool enabled() const { return !settings_.path.empty(); }
    /// One line with its line break.
    void add(std::string_view line);
    /// The file is opened anew before the next line; for SIGHUP.
    void reopen();
    /// Waits until all lines that were queued before have been written. False: not in time.
    bool flush(std::chrono::milliseconds patience);

    /// Opens a file to append to. A new one has exactly this mode; no link is followed.
    static Fd open(const std::string& path, mode_t mode);

private:
    void work();
    bool open();
    bool moved() const;
    /// Takes from `batch` what it writes; 0, or the error of the write that failed.
    int append(std::string& batch);
    /// Whether all of it was written; `done` is how much was.
    bool put(std::string_view bytes, std::size_t& done) const;
    void failed(const char* what, int error);

    const LineFileSettings settings_;
    const Clock& clock_;
    Log& log_;
    Fd file_;               ///< of the writing thread
    TimePoint looked_at_;   ///< likewise
    bool failing_ = false;  ///< likewise: said once, until it works again
    bool torn_ = false;     ///< likewise: the file ends within a line
    bool due_ = false;      ///< likewise: it could not be opened anew, and must be
    Mutex mutex_;
    Condition changed_;
    std::string queue_ HEARTH_GUARDED_BY(mutex_);
    std::uint64_t added_ HEARTH_GUARDED_BY(mutex_) = 0;    ///< bytes that were ever queued
    std::uint64_t written_ HEARTH_GUARDED_BY(mutex_) = 0;  ///< those of them that were written
    int hurried_ HEARTH_GUARDED_BY(mutex_) = 0;            ///< who waits in flush()
    bool reopen_ HEARTH_GUARDED_BY(mutex_) = false;
    bool stopping_ HEARTH_GUARDED_BY(mutex_) = false;
    std::jthread thread_;
};

}  // namespace hearth::metrics
