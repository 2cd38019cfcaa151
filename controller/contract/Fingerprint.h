#pragma once

#include <string>
#include <string_view>

namespace hearth::controller {

/// Returns a fingerprint, in hex, that is equal for requests that count as the same under one
/// Idempotency-Key. The journal and the sandbox get it, and requests may hold secrets: so it is
/// keyed with the server's own key, and nobody else can test guesses against it.
std::string fingerprintOf(std::string_view secret_key, std::string_view request);

}  // namespace hearth::controller
