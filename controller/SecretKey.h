#pragma once

#include <string>

namespace hearth::controller {

/// The 32 random bytes in `path`, made at the first call. A file of its own, so that ids derived
/// with it stay the same when the data file is lost.
std::string loadSecretKey(const std::string& path);

}  // namespace hearth::controller
