#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/Fd.h"
#include "base/Mutex.h"

namespace hearth::pool::gpu {

/// In place of a library: nothing is looked for, and no program started.
inline constexpr const char* kNoLibrary = "none";

/// How the program hearth-gpu is started.
struct HelperOptions {
    std::string program;  ///< its path
    std::string library = "libnvidia-ml.so.1";
    std::string cuda = "libcuda.so.1";
    std::optional<uid_t> uid = {};  ///< of root: what it becomes, with `gid`
    gid_t gid = 0;
    std::chrono::milliseconds process_wait{10'000};  ///< of a scrub, for others' processes to end
};

/// A program that was started by the helper: a driver's library is loaded there and nowhere else.
/// It is killed at the end. Move-only, not thread-safe.
class GpuProgram {
public:
    enum class Heard { Line, Late, Ended, Stopped };

    GpuProgram(Fd channel, Fd process);
    GpuProgram(GpuProgram&&) noexcept = default;
    GpuProgram& operator=(GpuProgram&&) = delete;
    ~GpuProgram();

    /// Sends a line without its end. False if the program has ended.
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

/// The server's helper for GPUs: a process that starts programs in which the driver's libraries are
/// loaded, for the server itself may start none and must survive a driver that hangs or crashes.
/// It ends with the server, also if that is killed, and takes them along. Thread-safe.
class GpuHelper {
public:
    /// A helper that was started and not yet used.
    struct Started {
        Fd socket;
        pid_t pid = -1;
    };
    /// Starts it; call before the server gives up root and the right to run programs. If the
    /// program cannot be run, the first spawn() says so. Starts nothing for kNoLibrary. Throws
    /// std::system_error.
    static Started start(const HelperOptions& options);

    GpuHelper(Started started, std::string program);
    GpuHelper(const GpuHelper&) = delete;
    GpuHelper& operator=(const GpuHelper&) = delete;
    ~GpuHelper();

    /// "watch", or "scrub " and a uuid: the program's words. Throws std::runtime_error.
    GpuProgram spawn(const std::string& request);

private:
    const std::string program_;
    const pid_t pid_;
    Mutex mutex_;
    Fd socket_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::pool::gpu
