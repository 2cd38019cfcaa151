#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hearth::cli {

struct Captured {
    int status = 0;    ///< exit status; 128 + N after a signal
    std::string text;  ///< standard output, up to 64 KiB; standard error is dropped
};

/// Runs a program (found by PATH) and waits for it; nullopt if it does not exist.
std::optional<Captured> capture(const std::vector<std::string>& arguments);

}  // namespace hearth::cli
