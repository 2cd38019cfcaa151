#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/Fd.h"
#include "base/Mutex.h"

namespace hearth::pool::gpu {

/// Given instead of a library: no GPUs are searched, and no program is started.
inline constexpr const char* kNoLibrary = "none";

/// The way to start the program hearth-gpu.
struct HelperOptions {
    std::string program;  ///< its path
    std::string library = "libnvidia-ml.so.1";
    std::string cuda = "libcuda.so.1";
    std::optional<uid_t> uid = {};  ///< started by root, it becomes this user, with `gid`
    gid_t gid = 0;
    std::chrono::milliseconds process_wait{10'000};  ///< of a scrub, for other processes to end
};

/// A program that the helper has started: a driver's library is loaded only in such programs. It is
/// killed at the end. Move-only, not thread-safe.
class GpuProgram {
public:
    enum class Heard { Line, Late, Ended, Stopped };

    GpuProgram(Fd channel, Fd process);
    GpuProgram(GpuProgram&&) noexcept = default;
    GpuProgram& operator=(GpuProgram&&) = delete;
    ~GpuProgram();

    /// Sends a line, without its newline in `line`. False if the program has ended.
    bool ask(const std::string& line) noexcept;
    /// Waits for a line, or until `stop` can be read.
    Heard listen(std::string& line, std::chrono::steady_clock::time_point until, int stop);
    void kill() noexcept;
    /// False if it has not ended after `limit`: a driver may hold it for longer.
    bool waitEnd(std::chrono::milliseconds limit) const noexcept;

private:
    Fd channel_;
    Fd process_;
    std::string read_;
};

/// The server's helper for GPUs: a process that starts the programs that load the driver's
/// libraries. The server may start none and must survive a driver that hangs or crashes. It ends
/// with the server, also if that is killed, and ends its programs. Thread-safe.
class GpuHelper {
public:
    /// A helper that has been started and is not used yet.
    struct Started {
        Fd socket;
        pid_t pid = -1;
    };
    /// Starts it; call before the server gives up root and the right to run programs. If the
    /// program cannot be run, the first spawn() reports that. Starts nothing for kNoLibrary. Throws
    /// std::system_error.
    static Started start(const HelperOptions& options);

    GpuHelper(Started started, std::string program);
    GpuHelper(const GpuHelper&) = delete;
    GpuHelper& operator=(const GpuHelper&) = delete;
    ~GpuHelper();

    /// Starts a program for `request`: "watch", or "scrub " and a uuid. Throws std::runtime_error.
    GpuProgram spawn(const std::string& request);

private:
    const std::string program_;
    const pid_t pid_;
    Mutex mutex_;
    Fd socket_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::pool::gpu
