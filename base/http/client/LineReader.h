#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::http {

/// Cuts a stream, given in pieces of any size, into lines that end with '\n'. Not thread-safe.
class LineReader {
public:
    /// The line has no '\n' and is valid during the call; false ends the reading.
    using OnLine = std::function<bool(std::string_view line)>;

    LineReader(std::size_t most, OnLine on_line) : most_(most), on_line_(std::move(on_line)) {}

    /// False once on_line has returned false. Throws Error(PayloadTooLarge) for a line of more than
    /// `most` bytes.
    bool feed(std::string_view piece);
    /// Bytes of a line whose end has not come yet.
    std::size_t unfinished() const noexcept { return rest_.size(); }

private:
    std::size_t most_;
    OnLine on_line_;
    std::string rest_;
};

}  // namespace hearth::http
