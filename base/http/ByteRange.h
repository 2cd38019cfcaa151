#pragma once

#include <cstdint>
#include <string_view>

namespace hearth {

/// The part of a file that a request asks for.
struct ByteRange {
    enum class Kind { Whole, Part, Unsatisfiable };
    Kind kind = Kind::Whole;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

/// Reads a Range header of one range ("bytes=0-99", "bytes=100-", "bytes=-50") against a file of
/// `size` bytes. Several ranges, other units and malformed headers mean the whole, as RFC 9110
/// allows.
ByteRange parseRange(std::string_view header, std::uint64_t size);

/// True if an If-None-Match header ("*", or ETags with or without W/) names `etag`, which is passed
/// with its quotes.
bool etagMatches(std::string_view header, std::string_view etag);

}  // namespace hearth
