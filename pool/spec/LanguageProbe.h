#pragma once

#include <array>

namespace hearth::pool {

/// What makes a language of an image that has no table of its own: code in `file`, run by
/// `program`.
struct LanguageProbe {
    const char* language;
    const char* file;
    const char* program;
};

/// The first program that is there makes the language.
inline constexpr std::array<LanguageProbe, 6> kLanguageProbes{{{"python", "main.py", "python3"},
                                                               {"python", "main.py", "python"},
                                                               {"javascript", "main.js", "node"},
                                                               {"node", "main.js", "node"},
                                                               {"bash", "main.sh", "bash"},
                                                               {"sh", "main.sh", "sh"}}};

/// Where programs are looked for besides the PATH of the image.
inline constexpr const char* kUsualPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

}  // namespace hearth::pool
