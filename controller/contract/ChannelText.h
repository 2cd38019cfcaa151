#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "controller/contract/Executions.h"

namespace hearth::controller {

/// Puts the pieces of one channel together, with a mark where output between them was not kept:
/// without it, the line before and the line after would read as one. Not thread-safe.
class ChannelText {
public:
    /// 1: stdout, 2: stderr.
    explicit ChannelText(int channel) : channel_(channel) {}

    /// Takes an execution's pieces, of both channels, in order from the first one on.
    void add(std::string& text, const OutputChunk& chunk) {
        const bool own = chunk.channel == channel_;
        if (chunk.offset > end_) {
            gap_ += chunk.offset - end_;
            // A channel that was written before the gap has its mark there; one that begins after
            // it has it at its start, because its own beginning may be what was lost.
            if (own || channel_ == last_) mark(text);
        }
        end_ = chunk.offset + chunk.bytes.size();
        last_ = chunk.channel;
        if (!own || chunk.bytes.empty()) return;
        mark(text);
        text += chunk.bytes;
        at_line_start_ = chunk.bytes.back() == '\n';
    }

private:
    void mark(std::string& text) {
        if (gap_ == 0) return;
        text += (at_line_start_ ? "[… " : "\n[… ") + std::to_string(std::exchange(gap_, 0)) +
                " bytes were not kept …]\n";
        at_line_start_ = true;
    }

    int channel_;
    std::uint64_t end_ = 0;  ///< of the piece before
    int last_ = 0;           ///< its channel
    std::uint64_t gap_ = 0;  ///< bytes that were not kept and are not marked yet
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
