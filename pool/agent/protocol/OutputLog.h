#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pool/agent/protocol/Frame.h"

namespace hearth::agent {

/// The output of one execution: one sequence of bytes over two channels; the first and the last
/// `limit / 2` bytes are kept. Every byte has an offset; a reader sees dropped bytes as a chunk
/// that starts after the requested offset. Memory is `limit` bytes and one bit for each, however
/// the channels alternate, and grows only as bytes arrive. Not thread-safe; no I/O.
class OutputLog {
public:
    /// Bytes of one channel. `bytes` stays valid until the next append.
    struct Chunk {
        std::uint64_t offset = 0;
        Channel channel = Channel::Stdout;
        std::string_view bytes;
    };

    explicit OutputLog(std::size_t limit)
        : head_(std::max<std::size_t>(limit / 2, 1)), limit_(2 * head_) {}

    /// Adds bytes that were read from Stdout or Stderr.
    void append(Channel channel, std::string_view bytes) {
        // Only bytes that stay visible are copied; bytes that the same call overwrites are only
        // counted.
        const std::uint64_t head_room = total_ < head_ ? head_ - total_ : 0;
        if (bytes.size() > head_room + limit_) {
            put(channel, bytes.substr(0, static_cast<std::size_t>(head_room)));
            bytes.remove_prefix(static_cast<std::size_t>(head_room));
            total_ += bytes.size() - head_;
            if (channel == Channel::Stderr) stderr_total_ += bytes.size() - head_;
            bytes.remove_prefix(bytes.size() - head_);
            reach(limit_);  // the ring is full from here on
        }
        put(channel, bytes);
    }

    /// Continues a copy of another log at `offset`: that log has dropped the bytes in between.
    /// `stderr_before`: stderrBefore(offset) there.
    void skipTo(std::uint64_t offset, std::uint64_t stderr_before) {
        if (offset <= total_) return;
        reach(limit_);
        stderr_total_ = std::clamp(stderr_before, stderr_total_, stderr_total_ + offset - total_);
        total_ = offset;
        skipped_to_ = offset;
    }

    /// Returns the next kept bytes at or after `from`, at most `max` of them and of one channel;
    /// empty bytes at the end.
    Chunk read(std::uint64_t from, std::size_t max) const {
        if (from >= head_ && from < tailBegin()) from = tailBegin();
        if (from >= total_) return {total_, Channel::Stdout, {}};
        const std::size_t at = position(from);
        const std::size_t contiguous = from < head_ ? head_ - at : limit_ - at;
        const auto length = static_cast<std::size_t>(
            std::min<std::uint64_t>({total_ - from, contiguous, static_cast<std::uint64_t>(max)}));
        const bool err = bit(at);
        return {from, err ? Channel::Stderr : Channel::Stdout,
                std::string_view(bytes_).substr(at, run(at, length, err))};
    }

    /// Returns how many bytes were ever written: the offset of the next one.
    std::uint64_t total() const noexcept { return total_; }
    /// Returns how many of the bytes before `offset` were Stderr's. A dropped byte counts as one
    /// before its gap's end.
    std::uint64_t stderrBefore(std::uint64_t offset) const {
        if (offset <= head_) return stderrIn(0, std::min(offset, total_));
        return stderr_total_ - stderrIn(std::max(std::min(offset, total_), tailBegin()), total_);
    }
    /// Returns how many of the written bytes, or of the first `among`, are no longer kept.
    std::uint64_t dropped(std::uint64_t among = UINT64_MAX) const noexcept {
        const std::uint64_t end = std::min(among, total_);
        return end > head_ ? std::min(end, tailBegin()) - head_ : 0;
    }
    std::size_t limit() const noexcept { return limit_; }

private:
    std::uint64_t tailBegin() const noexcept {
        return std::max(
            {static_cast<std::uint64_t>(head_), skipped_to_, total_ > limit_ ? total_ - head_ : 0});
    }

    /// The position of a byte: the head in place, then the tail as a ring.
    std::size_t position(std::uint64_t offset) const noexcept {
        return static_cast<std::size_t>(offset < head_ ? offset : head_ + (offset - head_) % head_);
    }

    void reach(std::size_t size) {
        if (bytes_.size() >= size) return;
        if (bytes_.capacity() < size) {
            bytes_.reserve(std::min(limit_, std::max<std::size_t>(2 * bytes_.capacity(), size)));
        }
        bytes_.resize(size);
        stderr_.resize((size + 63) / 64);
    }

    void put(Channel channel, std::string_view bytes) {
        while (!bytes.empty()) {
            const std::size_t at = position(total_);
            const std::size_t room = (total_ < head_ ? head_ : limit_) - at;
            const std::size_t count = std::min(room, bytes.size());
            reach(at + count);
            bytes.copy(bytes_.data() + at, count);
            mark(at, count, channel == Channel::Stderr);
            total_ += count;
            if (channel == Channel::Stderr) stderr_total_ += count;
            bytes.remove_prefix(count);
        }
    }

    /// Returns how many of the kept bytes from `from` to `to` are Stderr's.
    std::uint64_t stderrIn(std::uint64_t from, std::uint64_t to) const {
        std::uint64_t count = 0;
        while (from < to) {
            const std::size_t at = position(from);
            const std::size_t end = from < head_ ? head_ : limit_;
            const auto n = static_cast<std::size_t>(
                std::min<std::uint64_t>({to - from, end - at, 64 - at % 64}));
            const std::uint64_t word = stderr_[at / 64] >> (at % 64);
            count += static_cast<std::uint64_t>(
                std::popcount(n == 64 ? word : word & ((1ULL << n) - 1)));
            from += n;
        }
        return count;
    }

    bool bit(std::size_t at) const { return ((stderr_[at / 64] >> (at % 64)) & 1U) != 0; }

    void mark(std::size_t at, std::size_t count, bool value) {
        while (count > 0) {
            const std::size_t n = std::min<std::size_t>(64 - at % 64, count);
            const std::uint64_t ones = n == 64 ? ~0ULL : ((1ULL << n) - 1) << (at % 64);
            if (value) {
                stderr_[at / 64] |= ones;
            } else {
                stderr_[at / 64] &= ~ones;
            }
            at += n;
            count -= n;
        }
    }

    /// Returns how many of the `length` bytes from `at` on are of the same channel.
    std::size_t run(std::size_t at, std::size_t length, bool value) const {
        std::size_t done = 0;
        while (done < length) {
            const std::size_t i = at + done;
            std::uint64_t word = stderr_[i / 64] >> (i % 64);
            if (!value) word = ~word;
            const auto same =
                std::min<std::size_t>(static_cast<std::size_t>(std::countr_one(word)), 64 - i % 64);
            done += same;
            if (same < 64 - i % 64) break;
        }
        return std::min(done, length);
    }

    std::size_t head_;
    std::size_t limit_;
    std::uint64_t total_ = 0;
    std::uint64_t stderr_total_ = 0;
    std::uint64_t skipped_to_ = 0;  ///< end of the last gap that skipTo() made
    std::string bytes_;
    std::vector<std::uint64_t> stderr_;  ///< one bit for each byte
};

}  // namespace hearth::agent
