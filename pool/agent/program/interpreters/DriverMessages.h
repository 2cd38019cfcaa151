#pragma once

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

namespace hearth::agent {

/// The messages `<kind> <bytes>\n<payload>` of a language's driver (PROTOCOL.md, Drivers), cut from
/// a stream of bytes in which the tenant can write anything. Bounded; no I/O.
class DriverMessages {
public:
    static constexpr std::size_t kMaxResult = 4U << 20U;
    static constexpr std::size_t kMaxError = 65'536;
    static constexpr std::size_t kMaxOther = 4'096;

    void append(std::string_view bytes) { bytes_ += bytes; }

    /// Takes the next whole message; both views are valid until append. False if there is none yet.
    bool next(std::string_view& kind, std::string_view& payload) {
        if (broken_) return false;
        bytes_.erase(0, at_);
        at_ = 0;
        const std::size_t line = std::string_view(bytes_).substr(0, kMaxHead).find('\n');
        if (line == std::string::npos) {
            broken_ = bytes_.size() >= kMaxHead;
            return false;
        }
        const std::string_view head = std::string_view(bytes_).substr(0, line);
        const std::size_t space = head.find(' ');
        const char* const end = head.data() + head.size();
        const char* const digits = space == std::string_view::npos ? end : head.data() + space + 1;
        std::size_t size = 0;
        const auto [stop, error] = std::from_chars(digits, end, size);
        broken_ = digits == end || error != std::errc() || stop != end ||
                  size > limitOf(head.substr(0, space));
        if (broken_ || bytes_.size() - line - 1 < size) return false;
        kind = head.substr(0, space);
        payload = std::string_view(bytes_).substr(line + 1, size);
        at_ = line + 1 + size;
        return true;
    }

    /// The bytes are not a message, or a message is too large: reading stops for good.
    bool broken() const noexcept { return broken_; }

private:
    static constexpr std::size_t kMaxHead = 32;

    static std::size_t limitOf(std::string_view kind) {
        if (kind == "result") return kMaxResult;
        return kind == "error" ? kMaxError : kMaxOther;
    }

    std::string bytes_;
    std::size_t at_ = 0;
    bool broken_ = false;
};

}  // namespace hearth::agent
