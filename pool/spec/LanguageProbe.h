#pragma once

#include <array>

namespace hearth::pool {

/// What makes a language of an image that has no table of its own: code in `file`, run by
/// `program`, where there is one by the drivers that come with the agent
/// (pool/agent/protocol/PROTOCOL.md).
struct LanguageProbe {
    const char* language;
    const char* file;
    const char* program;
    const char* runner = "";
    const char* zygote = "";
    const char* context = "";
};

/// The first program that is there makes the language. What is called `python` may be of before
/// version 3.6, which the drivers need.
inline constexpr std::array<LanguageProbe, 6> kLanguageProbes{{
    {"python", "main.py", "python3", "/.hearth/python/run.py", "/.hearth/python/zygote.py",
     "/.hearth/python/context.py"},
    {"python", "main.py", "python"},
    {"javascript", "main.js", "node", "", "", "/.hearth/node/context.js"},
    {"node", "main.js", "node", "", "", "/.hearth/node/context.js"},
    {"bash", "main.sh", "bash", "", "", "/.hearth/bash/context.sh"},
    {"sh", "main.sh", "sh"},
}};

/// Where programs are looked for besides the PATH of the image.
inline constexpr const char* kUsualPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

}  // namespace hearth::pool
