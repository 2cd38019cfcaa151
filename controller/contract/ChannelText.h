#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "controller/contract/Executions.h"

namespace hearth::controller {

/// Puts the pieces of one channel together, with a mark where output between them was not kept:
/// without it, the line before and the line after would read as one. Not thread-safe.
class ChannelText {
public:
    /// `channel`: 1 for stdout, 2 for stderr. `end`: the offset after the last byte of both.
    ChannelText(int channel, std::uint64_t end) : channel_(channel), output_end_(end) {}

    /// Takes an execution's pieces, of both channels, in order from the first one on.
    void add(std::string& text, const OutputChunk& chunk) {
        const bool own = chunk.channel == channel_;
        if (chunk.offset > end_) {
            gap_ += chunk.offset - end_;
            gap_end_ = chunk.offset;
            // The output was cut in the channels on both sides.
            if (own || channel_ == last_) mark(text);
        }
        end_ = chunk.offset + chunk.bytes.size();
        last_ = chunk.channel;
        if (!own || chunk.bytes.empty()) return;
        if (begun_ || beganInGap(chunk.offset)) mark(text);
        gap_ = 0;
        begun_ = true;
        text += chunk.bytes;
        at_line_start_ = chunk.bytes.back() == '\n';
    }

private:
    /// A channel that is written all the time comes soon after the gap. One that begins in the last
    /// quarter of what was kept, such as a last word on stderr, has lost nothing.
    bool beganInGap(std::uint64_t offset) const {
        return offset - gap_end_ < (output_end_ - std::min(gap_end_, output_end_)) / 4 * 3;
    }

    void mark(std::string& text) {
        if (gap_ == 0) return;
        text += (at_line_start_ ? "[… " : "\n[… ") + std::to_string(std::exchange(gap_, 0)) +
                " bytes were not kept …]\n";
        at_line_start_ = true;
    }

    int channel_;
    std::uint64_t output_end_;
    std::uint64_t gap_end_ = 0;
    std::uint64_t end_ = 0;  ///< of the piece before
    int last_ = 0;           ///< its channel
    std::uint64_t gap_ = 0;  ///< bytes that were not kept and are not marked yet
    bool begun_ = false;
    bool at_line_start_ = true;
};

/// Fills a view's output with an execution's pieces, in order from the first one on.
class OutputTexts {
public:
    /// `view` must outlive it, and have its `output_end`.
    explicit OutputTexts(ExecutionView& view)
        : view_(view), out_(1, view.output_end), err_(2, view.output_end) {}

    void add(const OutputChunk& chunk) {
        out_.add(view_.stdout_bytes, chunk);
        err_.add(view_.stderr_bytes, chunk);
    }

private:
    ExecutionView& view_;
    ChannelText out_;
    ChannelText err_;
};

}  // namespace hearth::controller
