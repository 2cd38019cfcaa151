#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/Json.h"

/// Members of an Engine's answer; empty or 0 if absent or of another type.
namespace hearth::pool::docker {

/// Returns the member, or an empty object.
inline const Json& child(const Json& object, const char* key) {
    static const Json nothing = Json::object();
    const auto found = object.is_object() ? object.find(key) : object.end();
    return found != object.end() && found->is_object() ? *found : nothing;
}

inline std::string text(const Json& object, const char* key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

inline std::uint64_t count(const Json& object, const char* key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

}  // namespace hearth::pool::docker
