#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "base/Fd.h"

namespace hearth::metrics {

/// A descriptor whose reader may have stalled: no write to a pipe, socket or terminal ever blocks.
/// Thread-safe; does not own the descriptor.
class LogOutput {
public:
    /// Opens a pipe or terminal a second time, so that other users of the descriptor do not become
    /// non-blocking: construct it before the process gives up its rights.
    explicit LogOutput(int fd);

    /// Returns the number of bytes taken: fewer than given, or none, if the reader has stalled; -1
    /// if there is no reader (errno has the reason).
    [[nodiscard]] std::ptrdiff_t write(std::string_view bytes) const;
    /// Waits until some bytes may be taken, at most `patience`.
    void waitWritable(std::chrono::milliseconds patience) const;
    /// Writes all of it within `patience`; false if that failed.
    bool say(std::string_view text, std::chrono::milliseconds patience) const;

private:
    int fd() const noexcept { return own_ ? own_.get() : fd_; }

    int fd_;
    Fd own_;  ///< the same pipe or terminal, non-blocking
    enum class Kind { File, Stream, Socket } kind_ = Kind::File;
};

}  // namespace hearth::metrics
