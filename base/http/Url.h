#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

/// Decodes %XX; with `plus`, also '+' to a blank. nullopt for a bad escape or a decoded NUL.
std::optional<std::string> percentDecode(std::string_view text, bool plus = false);
/// Encodes all but unreserved characters, and '/' unless `keep_slash`.
std::string percentEncode(std::string_view text, bool keep_slash = false);

using QueryParams = std::vector<std::pair<std::string, std::string>>;
/// Parses "a=1&b=x%20y" in order; nullopt for a bad escape or a decoded NUL.
std::optional<QueryParams> parseQuery(std::string_view text);

/// ASCII only, whatever the locale.
bool equalsIgnoreCase(std::string_view a, std::string_view b) noexcept;
std::string toLower(std::string_view text);
/// Returns `text` without blanks and tabs at both ends.
std::string_view trim(std::string_view text) noexcept;
/// Takes `prefix` off the front of `text`; false if `text` does not start with it.
bool takePrefix(std::string_view& text, std::string_view prefix) noexcept;

}  // namespace hearth
