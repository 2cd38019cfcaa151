#pragma once

#include <string>

namespace hearth::controller {

class Journal;

/// Returns the 32 random bytes in `path`, created at the first call. The key has its own file, so
/// ids derived with it stay the same if the data file is lost. A missing or damaged file is written
/// again from `copy` (the key's 32 bytes; "" for none), because data sealed with the key must stay
/// readable; the damaged file is kept beside it. Throws std::runtime_error for damage without a
/// copy, std::system_error.
std::string loadSecretKey(const std::string& path, const std::string& copy = {});

/// Returns the key `name` from a folder that replicas share and only read, such as a mounted
/// Secret: exactly 32 bytes. Throws Error(InvalidArgument) with a hint.
std::string sharedKey(const std::string& folder, const std::string& name);

/// Returns the key and keeps a copy in the journal; each restores the other. Throws as above.
std::string keptSecretKey(const std::string& path, Journal& journal);

}  // namespace hearth::controller
