#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pool/agent/protocol/OutputLog.h"

namespace hearth::agent {

/// An OutputLog as readers see it: the gap between head and tail begins and ends between two lines
/// if one ends near, and never inside a character or a terminal's control sequence. No I/O.
class OutputCut {
public:
    /// `log` must outlive it and not change meanwhile.
    explicit OutputCut(const OutputLog& log)
        : log_(log), head_(log.limit() / 2), near_(std::min(kNear, log.limit() / 4)) {
        tail_ = log.total() > head_ ? log.read(head_, 1).offset : head_;
    }

    /// Like OutputLog::read(). A reader that is past an edge of the gap already loses nothing.
    OutputLog::Chunk read(std::uint64_t from, std::size_t max) const {
        if (tail_ == head_ || from >= tail_) return log_.read(from, max);
        if (from + near_ < head_) return upTo(head_ - near_, from, max);
        const Gap gap = shown();
        if (from < gap.begin) return upTo(gap.begin, from, max);
        if (from > gap.begin && from < head_) return log_.read(from, max);
        return log_.read(gap.end, max);
    }

    /// Returns how many of the first `among` bytes are not shown.
    std::uint64_t dropped(std::uint64_t among) const {
        if (tail_ == head_ || among <= head_ - near_) return 0;
        const Gap gap = shown();
        return std::min(among, gap.end) - std::min(among, gap.begin);
    }

    /// Returns how many of the bytes that are not shown are Stderr's.
    std::uint64_t droppedStderr() const {
        if (tail_ == head_) return 0;
        const Gap gap = shown();
        return log_.stderrBefore(gap.end) - log_.stderrBefore(gap.begin);
    }

private:
    struct Gap {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };

    /// A longer line is cut.
    static constexpr std::size_t kNear = 4'096;
    static constexpr std::size_t kLongSequence = 32;  // of a terminal

    static bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

    /// The size of what is cut off at the end of the head.
    static std::size_t rest(std::string_view head) {
        if (const std::size_t line = head.rfind('\n'); line != std::string_view::npos) {
            return head.size() - line - 1;
        }
        if (const std::size_t escape = head.rfind('\x1b'); escape != std::string_view::npos) {
            const std::string_view sequence = head.substr(escape);
            const bool ended =
                sequence.size() > 1 &&
                (sequence[1] != '[' || std::any_of(sequence.begin() + 2, sequence.end(), isFinal));
            if (!ended && sequence.size() < kLongSequence) return sequence.size();
        }
        std::size_t size = 0;
        while (size < 3 && size < head.size() && continues(head[head.size() - 1 - size])) ++size;
        if (size == head.size()) return 0;
        const auto first = static_cast<unsigned char>(head[head.size() - 1 - size]);
        const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
        return length > size + 1 ? size + 1 : 0;
    }
    static bool isFinal(char c) { return c >= '@' && c <= '~'; }

    /// The size of what is cut off at the start of the tail.
    std::size_t start() const {
        const OutputLog::Chunk first = log_.read(tail_, near_);
        OutputLog::Chunk next = first;
        for (std::size_t size = 0; !next.bytes.empty() && next.channel == first.channel;) {
            const std::size_t line = next.bytes.find('\n');
            if (line != std::string_view::npos) return size + line + 1;
            size += next.bytes.size();
            next = log_.read(tail_ + size, near_ - size);
        }
        std::size_t size = 0;
        while (size < 3 && size < first.bytes.size() && continues(first.bytes[size])) ++size;
        return size;
    }

    OutputLog::Chunk upTo(std::uint64_t end, std::uint64_t from, std::size_t max) const {
        return log_.read(from, static_cast<std::size_t>(std::min<std::uint64_t>(max, end - from)));
    }
    Gap shown() const {
        OutputLog::Chunk last;  // of one channel, before the gap
        for (std::uint64_t at = head_ - near_; at < head_; at = last.offset + last.bytes.size()) {
            last = upTo(head_, at, near_);
        }
        return {head_ - rest(last.bytes), tail_ + start()};
    }

    const OutputLog& log_;
    std::size_t head_;        ///< the log's head ends here
    std::size_t near_;        ///< how far an edge may move
    std::uint64_t tail_ = 0;  ///< the log's tail begins here; head_ if nothing is dropped
};

}  // namespace hearth::agent
