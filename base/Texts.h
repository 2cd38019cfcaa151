#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

/// The one table of texts of an enumeration that counts from zero, in the order of its values.
template <typename Enum, std::size_t Count>
struct Texts {
    std::array<const char*, Count> texts;

    constexpr const char* of(Enum value) const { return texts[static_cast<std::size_t>(value)]; }
    constexpr std::optional<Enum> find(std::string_view text) const {
        for (std::size_t i = 0; i < Count; ++i) {
            if (text == texts[i]) return static_cast<Enum>(i);
        }
        return std::nullopt;
    }
    std::vector<std::string> all() const { return {texts.begin(), texts.end()}; }
};

}  // namespace hearth
