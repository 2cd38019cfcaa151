#pragma once

#include <string>
#include <vector>

namespace hearth::pool::launcher {

/// Returns the known vulnerabilities of a runc of this version. `version` as in "runc version
/// 1.1.5+ds1", `commit` as in "1.1.5+ds1-1+deb12u1" (Debian puts its patch level there). Pure;
/// empty for a program that is not runc.
std::vector<std::string> knownHoles(const std::string& version, const std::string& commit);

}  // namespace hearth::pool::launcher
