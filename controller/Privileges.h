#pragma once

#include <sys/types.h>

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

/// Becomes the account for good: no additional groups, no capabilities, no way back, not dumpable.
/// Call while the process has one thread. Throws std::system_error; the process must then end.
void becomeAccount(const Account& account);

/// Raises the limit of open files as far as it goes; each sandbox and client costs some.
void raiseFileLimit();

}  // namespace hearth::controller
