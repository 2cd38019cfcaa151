#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace hearth::controller {

/// An account of the machine.
struct Account {
    std::string name;
    uid_t uid = 0;
    gid_t gid = 0;
};

/// Throws Error(InvalidArgument) with the command that makes it, if there is none.
Account findAccount(const std::string& name);

/// Becomes the account for good: no additional group but `group`, no way back, and as
/// stayAsWeAre(), with an empty bounding set. Call while the process has one thread. Throws
/// std::system_error; the process must then end.
void becomeAccount(const Account& account, std::optional<gid_t> group = std::nullopt);
/// The process gains nothing more, holds no capability, is not dumpable, leaves no core, and runs
/// no program from now on: see ServerFilter.h.
void stayAsWeAre();

/// Raises the limit of open files as far as it goes; each sandbox and client costs some.
void raiseFileLimit();

}  // namespace hearth::controller
