#pragma once

#include <string>

#include "api/serve/process/Privileges.h"

namespace hearth::program {

/// Repairs faults that would keep the server from opening its own files in `folder`, as root and
/// before root is given up: files of other users (an operator put a copy back) become the
/// account's; a folder or a dangling link in place of a state file is renamed to
/// `NAME.damaged-TIME`. Only plain files with one name change their owner. A missing folder is
/// fine.
void repairState(const std::string& folder, const controller::Account& account);

}  // namespace hearth::program
