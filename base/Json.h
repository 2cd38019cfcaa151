#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace hearth {

/// JSON values keep the order of their keys, so that answers have the order of the code.
using Json = nlohmann::ordered_json;

/// The limits of a foreign document.
struct JsonLimits {
    std::size_t bytes = 4U << 20U;
    std::size_t depth = 32;
    std::size_t values = 100'000;
    std::size_t members = 1'000;  ///< per object: look-up in it is linear
    /// A value that is nested too deeply becomes null, and a member whose key holds a NUL is
    /// skipped: one value must not make a document of many authors unreadable.
    bool lenient = false;
};

/// Parses a foreign document: valid UTF-8, no duplicate key, no NUL in a key, within `limits`,
/// nothing after it. Throws Error(InvalidArgument) with the place and the reason.
Json parseJson(std::string_view text, const JsonLimits& limits = {});

/// Returns the document as one line; bytes that are not UTF-8 are replaced by U+FFFD.
std::string dumpJson(const Json& value);

/// Returns the string at `key` of an object; empty if there is none.
std::string textAt(const Json& object, const char* key);

/// Returns `bytes` as valid UTF-8: each bad sequence becomes U+FFFD.
std::string toUtf8(std::string_view bytes);
bool isUtf8(std::string_view bytes);

}  // namespace hearth
