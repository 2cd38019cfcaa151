#pragma once

#include <initializer_list>
#include <string>

namespace hearth::pool::image {

/// True if a program's output contains one of these texts.
inline bool holdsOneOf(const std::string& said, std::initializer_list<const char*> words) {
    for (const char* word : words) {
        if (said.find(word) != std::string::npos) return true;
    }
    return false;
}

}  // namespace hearth::pool::image
