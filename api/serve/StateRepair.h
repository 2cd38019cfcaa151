#pragma once

#include <string>

#include "api/serve/Privileges.h"

namespace hearth::program {

/// Puts right what would keep the server from opening its own files in `folder`, as root and before
/// root is given up: files that belong to somebody else (an operator put a copy back) become the
/// account's; a folder or a dangling link in the place of a file of state goes aside as
/// `NAME.damaged-TIME`. Only plain files with one name change their owner. A missing folder is
/// fine.
void repairState(const std::string& folder, const controller::Account& account);

}  // namespace hearth::program
