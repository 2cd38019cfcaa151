#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Json.h"

namespace hearth::controller {

/// A member of a foreign JSON object: its value is not read yet, and may be no JSON.
struct RawMember {
    std::string key;
    std::string_view value;
};

/// Splits a foreign object into its members, so that a bad value spoils no other. nullopt if the
/// text is not an object of at most `most` members. No recursion; linear time.
std::optional<std::vector<RawMember>> rawMembers(std::string_view object, std::size_t most);

/// A foreign value, or the reason why it is none.
struct ForeignValue {
    std::optional<Json> json;
    std::string problem;
};

/// Reads a foreign value within `limits`. A lone surrogate in a text, which UTF-8 cannot hold,
/// becomes the six characters of its escape, and bytes that are not UTF-8 become U+FFFD.
ForeignValue foreignValue(std::string_view raw, const JsonLimits& limits);

}  // namespace hearth::controller
