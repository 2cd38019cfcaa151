#pragma once

#include <string>

#include "base/Fd.h"

namespace hearth {

/// One server's own name on this machine: derived from the real path of its data directory, so
/// that servers and tests run side by side and a sweep touches only its own things.
struct Instance {
    std::string name;      ///< 12 hex digits
    std::string data_dir;  ///< real path
    std::string run_dir;   ///< /run/hearth/<name>, on tmpfs: gone with the machine; for others than
                           ///< root in $XDG_RUNTIME_DIR
};

/// Creates the data directory (0711) if need be and derives the instance from it; its run_dir is
/// made by who uses it. Throws Error(InvalidArgument, DiskFull) with what to do where the directory
/// cannot be made.
Instance openInstance(const std::string& data_dir);

/// Throws Error(InvalidArgument) where nothing can be made in it. What stands in the way besides a
/// folder's mode (a read-only disk, a file system of the kernel's) shows only by trying. A full
/// disk passes: what needs room there says so itself.
void requireWritable(const Instance& instance);

/// Throws Error(InvalidArgument) with the fix where a folder above the data lets only its owner
/// pass: the server's user and the sandboxes' roots must reach what is theirs.
void requirePassable(const Instance& instance);

/// Makes the run_dir and holds `<run_dir>/lock` for the life of the process, so that no second
/// server uses the data. Throws Error(Conflict) when another one does. The descriptor keeps the
/// lock.
Fd lockInstance(const Instance& instance);

/// Removes a run_dir that nobody uses: no server holds its lock, no launcher its own, no sandbox
/// lives (sockets, bundles, claim marks). False where one of these is not so. Throws
/// std::system_error where that cannot be found out.
bool removeDeadRunDir(const std::string& run_dir);
/// The same for all others beside that of `own` which have not been touched for a minute: those of
/// servers that could not clean up behind them. Failures are passed over: what is left harms
/// nobody.
void removeDeadRunDirs(const Instance& own);

}  // namespace hearth
