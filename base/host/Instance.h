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

/// Throws the same if nothing can be created in it. Obstacles besides a folder's mode (a read-only
/// disk, a kernel file system) show only by trying. A full disk passes: what needs room there says
/// so itself.
void requireWritable(const Instance& instance);

/// Throws Error(InvalidArgument) with the fix where a folder above the data lets only its owner
/// pass: the server's user and the sandboxes' roots must reach what is theirs.
void requirePassable(const Instance& instance);

/// Makes the run_dir and holds `<run_dir>/lock` for the life of the process, so that no second
/// server uses the data. Throws Error(Conflict) when another one does. The descriptor keeps the
/// lock.
Fd lockInstance(const Instance& instance);

/// Removes an unused run_dir: no server holds its lock, no launcher its own, and no sandbox lives
/// (sockets, bundles, claim marks). False if one of these does not hold. Throws std::system_error
/// if that cannot be found out.
bool removeDeadRunDir(const std::string& run_dir);
/// The same for all other run_dirs beside `own` that have not been touched for a minute: their
/// servers could not clean up. Failures are ignored, because a leftover does no harm.
void removeDeadRunDirs(const Instance& own);

}  // namespace hearth
