#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>

namespace hearth::controller {

/// A user account of the machine.
struct Account {
    std::string name;
    uid_t uid = 0;
    gid_t gid = 0;
};

/// Returns the account. Error(InvalidArgument) if it is root, or missing (with the command for it).
Account findAccount(const std::string& name);

/// Becomes the account for good: no additional group except `group`, no way back, an empty bounding
/// set, and everything that stayAsWeAre() does. Call while the process has one thread. Throws
/// std::system_error; the process must then end.
void becomeAccount(const Account& account, std::optional<gid_t> group = std::nullopt);
/// From now on the process gains no privileges, has no capability, is not dumpable, leaves no core,
/// and runs no program: see ServerFilter.h.
void stayAsWeAre();

/// Raises the limit of open files to its maximum, because each sandbox and client needs some.
void raiseFileLimit();

/// Number of descriptors that widenFileTable() makes room for; 8 bytes each.
inline constexpr rlim_t kFileTable = 16'384;
/// Makes the table of descriptors large enough for many sandboxes and clients, within the limit of
/// open files. Otherwise the kernel doubles it whenever it is full, and in a process with several
/// threads the thread that opens the file then waits for an RCU grace period (expand_files in
/// fs/file.c): 10 ms were measured in a claim. Call while the process has one thread, after the
/// other processes were forked.
void widenFileTable() noexcept;

}  // namespace hearth::controller
