#pragma once

#include <array>

namespace hearth::pool {

/// The definition of a language for images without a table: code in `file`, run by `program`, with
/// one of the agent's drivers (pool/agent/protocol/PROTOCOL.md) if there is one.
struct LanguageProbe {
    const char* language;
    const char* file;
    const char* program;
    const char* runner = "";
    const char* zygote = "";
    const char* context = "";
};

inline constexpr const char* kNodeRunner = "--require=/.hearth/node/run.js";

/// The first existing program defines the language. `python` may be older than version 3.6, which
/// the drivers require.
inline constexpr std::array<LanguageProbe, 7> kLanguageProbes{{
    {"python", "main.py", "python3", "/.hearth/python/run.py", "/.hearth/python/zygote.py",
     "/.hearth/python/context.py"},
    {"python", "main.py", "python"},
    {"javascript", "main.js", "node", kNodeRunner, "", "/.hearth/node/context.js"},
    {"node", "main.js", "node", kNodeRunner, "", "/.hearth/node/context.js"},
    {"mjs", "main.mjs", "node", kNodeRunner},
    {"bash", "main.sh", "bash", "", "", "/.hearth/bash/context.sh"},
    {"sh", "main.sh", "sh"},
}};

/// The folders that are searched for programs, in addition to the image's PATH.
inline constexpr const char* kUsualPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

}  // namespace hearth::pool
