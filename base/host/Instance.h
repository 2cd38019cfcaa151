#pragma once

#include <string>

#include "base/Fd.h"

namespace hearth {

/// One server's own name on this machine: derived from the real path of its data directory, so that
/// servers and tests run side by side and a cleanup touches only its own things.
struct Instance {
    std::string name;      ///< 12 hex digits
    std::string data_dir;  ///< real path
    std::string run_dir;   ///< /run/hearth/<name>, on tmpfs: lost at reboot; without root, in
                           ///< $XDG_RUNTIME_DIR instead of /run
};

/// Creates the data directory (0711) if needed and derives the instance from it; the run_dir's
/// users create the run_dir. Throws Error(InvalidArgument, DiskFull) with advice if the directory
/// cannot be created.
Instance openInstance(const std::string& data_dir);

/// Throws the same if nothing can be created in it. Obstacles other than a folder's mode (a
/// read-only disk, a kernel file system) show only by trying. A full disk passes: code that needs
/// space reports that itself.
void requireWritable(const Instance& instance);

/// Throws Error(InvalidArgument) with the fix if a folder above the data lets only its owner pass:
/// the server's user and the sandboxes' roots must reach their own files.
void requirePassable(const Instance& instance);

/// Creates the run_dir and holds `<run_dir>/lock` for the life of the process, so that no second
/// server uses the data. Throws Error(Conflict) if another server holds it. The descriptor keeps
/// the lock.
Fd lockInstance(const Instance& instance);

/// Removes an unused run_dir: no server holds its lock, no launcher holds its own, and no sandbox
/// lives (sockets, bundles, claim marks). False if one of these is not true. Throws
/// std::system_error if that cannot be determined.
bool removeDeadRunDir(const std::string& run_dir);
/// The same for all other run_dirs beside `own` that have not been touched for a minute: their
/// servers could not clean up. Ignores failures, because a leftover does no harm.
void removeDeadRunDirs(const Instance& own);

}  // namespace hearth
