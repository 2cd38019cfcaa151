#pragma once

#include <string>
#include <vector>

namespace hearth::pool::launcher {

/// Known vulnerabilities that a runc of this version is not free of. `version` as in "runc version
/// 1.1.5+ds1", `commit` as in "1.1.5+ds1-1+deb12u1" (Debian puts its patch level there). Pure; for
/// a program that is not runc it is empty.
std::vector<std::string> knownHoles(const std::string& version, const std::string& commit);

}  // namespace hearth::pool::launcher
