#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace hearth {

/// JSON values keep the order of their keys, so that answers read as they are written here.
using Json = nlohmann::ordered_json;

/// How much a foreign document may ask of us.
struct JsonLimits {
    std::size_t bytes = 4U << 20U;
    std::size_t depth = 32;
    std::size_t values = 100'000;
    std::size_t members = 1'000;  ///< of one object: look-up in it is linear
    /// What is nested too deeply becomes null, and a member whose key holds a NUL is left out: one
    /// value of many authors' must not make the whole document unreadable.
    bool lenient = false;
};

/// Parses a foreign document: valid UTF-8, no duplicate key, no NUL in a key, within `limits`,
/// nothing after it. Throws Error(InvalidArgument) that says where and what.
Json parseJson(std::string_view text, const JsonLimits& limits = {});

/// The document as one line; bytes that are not UTF-8 are replaced by U+FFFD.
std::string dumpJson(const Json& value);

/// The string at `key` of an object; empty if there is none.
std::string textAt(const Json& object, const char* key);

/// The longest valid UTF-8 text made of `bytes`: bad sequences become U+FFFD.
std::string toUtf8(std::string_view bytes);
bool isUtf8(std::string_view bytes);

}  // namespace hearth
