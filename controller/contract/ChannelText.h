#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "controller/contract/Executions.h"

namespace hearth::controller {

/// Puts the pieces of one channel together, with a mark where output of it was not kept: without
/// it, the line before and the line after would read as one. Not thread-safe.
class ChannelText {
public:
    /// `channel`: 1 for stdout, 2 for stderr.
    explicit ChannelText(int channel) : channel_(channel) {}

    /// Takes an execution's pieces, of both channels, in order from the first one on.
    void add(std::string& text, const OutputChunk& chunk) {
        const std::uint64_t gap = chunk.offset - std::min(end_, chunk.offset);
        const std::uint64_t stderr_lost = std::min(gap, chunk.gap_stderr);
        if (const std::uint64_t lost = channel_ == 2 ? stderr_lost : gap - stderr_lost; lost > 0) {
            text += (at_line_start_ ? "[… " : "\n[… ") + std::to_string(lost) +
                    " bytes were not kept …]\n";
            at_line_start_ = true;
        }
        end_ = chunk.offset + chunk.bytes.size();
        if (chunk.channel != channel_ || chunk.bytes.empty()) return;
        text += chunk.bytes;
        at_line_start_ = chunk.bytes.back() == '\n';
    }

private:
    int channel_;
    std::uint64_t end_ = 0;  ///< of the piece before
    bool at_line_start_ = true;
};

/// Fills a view's output with an execution's pieces, in order from the first one on.
class OutputTexts {
public:
    /// `view` must outlive it.
    explicit OutputTexts(ExecutionView& view) : view_(view) {}

    void add(const OutputChunk& chunk) {
        out_.add(view_.stdout_bytes, chunk);
        err_.add(view_.stderr_bytes, chunk);
    }

private:
    ExecutionView& view_;
    ChannelText out_{1};
    ChannelText err_{2};
};

}  // namespace hearth::controller
