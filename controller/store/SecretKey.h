#pragma once

#include <string>

namespace hearth::controller {

class Journal;

/// The 32 random bytes in `path`, made at the first call. A file of its own, so that ids derived
/// with it stay the same when the data file is lost. Where the file is missing or damaged it is
/// written again from `copy` (the key's 32 bytes; "" for none), for what was sealed with the key
/// must stay readable; what stood in its place is kept beside it. Throws std::runtime_error for
/// damage without a copy, std::system_error.
std::string loadSecretKey(const std::string& path, const std::string& copy = {});

/// The key `name` of a folder that replicas share and only read, such as a mounted Secret: exactly
/// 32 bytes. Throws Error(InvalidArgument) with what to do.
std::string sharedKey(const std::string& folder, const std::string& name);

/// The key, with a copy in the journal: either brings the other back. Throws as loadSecretKey().
std::string keptSecretKey(const std::string& path, Journal& journal);

}  // namespace hearth::controller
