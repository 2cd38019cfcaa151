#pragma once

#include <cstdint>
#include <string>

#include "base/Clock.h"

namespace hearth::controller {

/// One line of a recorded trace, with its line feed.
std::string traceLine(WallTime arrival);

/// Appends the arrivals of claims to `<directory>/<pool>.trace`, for `hearth simulate`. Writes to
/// the page cache only, but must not be called while a claim waits.
class TraceRecorder {
public:
    /// An empty directory: nothing is recorded.
    explicit TraceRecorder(std::string directory) : directory_(std::move(directory)) {}

    /// False if the file cannot be written.
    bool record(const std::string& pool, WallTime at, std::uint64_t claims) const;

private:
    const std::string directory_;
};

}  // namespace hearth::controller
