#pragma once

#include <string>

#include "api/serve/process/Privileges.h"

namespace hearth::program {

/// Repairs faults that would keep the server from opening its own files in `folder`; runs as root,
/// before root is given up. Files of other users (an operator restored a copy) become the
/// account's; a folder or a dangling link in place of a state file is renamed to
/// `NAME.damaged-TIME`. Only plain files with one name change their owner. A missing folder is
/// fine.
void repairState(const std::string& folder, const controller::Account& account);

}  // namespace hearth::program
