#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace hearth {

/// Fills `out` from the kernel's generator. Throws std::system_error if it cannot.
void randomBytes(void* out, std::size_t size);

/// "ws_", "sb_", "ex_" or "cx_" and 128 random bits in lower-case hex: unguessable.
std::string newId(std::string_view prefix);
/// An id derived from a key and parts (HMAC-SHA-256, first 128 bits): the same parts always give
/// the same id and nobody without the key can make one. Parts are length-prefixed.
std::string derivedId(std::string_view prefix, std::string_view key,
                      std::initializer_list<std::string_view> parts);
/// True for `prefix` and 32 lower-case hex digits.
bool isId(std::string_view text, std::string_view prefix);

/// Compares in a time that depends only on the lengths.
bool constantTimeEqual(std::string_view a, std::string_view b);

std::string base64Encode(std::string_view bytes);
/// Standard alphabet with padding; false for any other text.
bool base64Decode(std::string_view text, std::string& out);
/// URL alphabet, no padding.
std::string base64UrlEncode(std::string_view bytes);
bool base64UrlDecode(std::string_view text, std::string& out);

}  // namespace hearth
