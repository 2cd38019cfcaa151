#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth {

/// Encrypts `plain` so that only a holder of `key` (32 bytes) can read it, and only with the same
/// `context`, which is not part of the result: a seal for one purpose does not open for another.
/// AES-256-GCM (NIST SP 800-38D) with a random nonce, in URL-safe base64.
std::string seal(std::string_view key, std::string_view context, std::string_view plain);
/// Returns nullopt unless `sealed` is a result of seal() with this key and context.
std::optional<std::string> unseal(std::string_view key, std::string_view context,
                                  std::string_view sealed);

}  // namespace hearth
