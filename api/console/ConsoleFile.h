#pragma once

#include <string_view>

namespace hearth::console {

/// A file of the console, embedded in this program by embed.py from the folder page and Debian's
/// xterm.js.
struct ConsoleFile {
    std::string_view name;  ///< "main.js"
    std::string_view type;  ///< "text/javascript; charset=utf-8"
    std::string_view etag;  ///< with its quotes
    std::string_view bytes;
};

/// Null for an unknown name. Lives as long as the program.
const ConsoleFile* findConsoleFile(std::string_view name);

}  // namespace hearth::console
