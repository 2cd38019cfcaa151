#pragma once

#include <string>
#include <string_view>

namespace hearth::controller {

/// What makes two requests with one Idempotency-Key the same request, in hex. A request may hold
/// secrets, and its fingerprint is kept in the journal and told to the sandbox: without the key,
/// which is the server's own, nobody can try guesses on it.
std::string fingerprintOf(std::string_view secret_key, std::string_view request);

}  // namespace hearth::controller
