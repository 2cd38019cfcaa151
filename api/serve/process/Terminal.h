#pragma once

#include <chrono>
#include <string>

#include "metrics/LogOutput.h"

namespace hearth::program {

/// The server's standard streams. Made as root, because a pipe of root cannot be reopened later.
struct Terminal {
    /// Writes words for a person; gives up after a second if the terminal takes no more.
    void say(const std::string& text) const {
        static_cast<void>(words.say(text, std::chrono::seconds(1)));
    }

    metrics::LogOutput words{1};
    metrics::LogOutput log{2};
};

}  // namespace hearth::program
