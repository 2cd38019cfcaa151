#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

/// The wire format of PROTOCOL.md. Shared by the server and by the program inside the sandbox, so
/// it needs nothing but these headers.
namespace hearth::agent {

inline constexpr int kProtocolVersion = 1;
inline constexpr std::size_t kHeaderSize = 12;
inline constexpr std::size_t kMaxPayload = 262'144;
inline constexpr std::size_t kInitialCredit = 262'144;
inline constexpr std::size_t kOffsetSize = 8;
/// The sizes of one result and of all results of one execution, and the number of results.
inline constexpr std::size_t kMaxResult = 4U << 20U;
inline constexpr std::size_t kMaxResultBytes = 8U << 20U;
inline constexpr std::size_t kMaxResults = 100;
inline constexpr std::size_t kMaxContexts = 8;
/// The descriptor on which the agent finds its listening socket.
inline constexpr int kListenFd = 3;
/// A relay's first line (PROTOCOL.md), before it carries frames.
inline constexpr std::string_view kRelayReady = "hearth-relay 1\n";

enum class FrameType : std::uint8_t {
    Request = 1,
    Reply = 2,
    Error = 3,
    Data = 4,
    Credit = 5,
    End = 6,
    Cancel = 7,
    Note = 8,
};

enum class Channel : std::uint8_t { Bytes = 0, Stdout = 1, Stderr = 2, Results = 3 };

struct FrameHeader {
    std::uint32_t length = 0;
    std::uint32_t stream = 0;
    FrameType type = FrameType::Request;
    Channel channel = Channel::Bytes;
};

inline void putU32(unsigned char* out, std::uint32_t v) noexcept {
    for (unsigned i = 0; i < 4; ++i) out[i] = static_cast<unsigned char>(v >> (8U * i));
}
inline std::uint32_t getU32(const unsigned char* in) noexcept {
    std::uint32_t v = 0;
    for (unsigned i = 0; i < 4; ++i) v |= static_cast<std::uint32_t>(in[i]) << (8U * i);
    return v;
}
inline void putU64(unsigned char* out, std::uint64_t v) noexcept {
    for (unsigned i = 0; i < 8; ++i) out[i] = static_cast<unsigned char>(v >> (8U * i));
}
inline std::uint64_t getU64(const unsigned char* in) noexcept {
    std::uint64_t v = 0;
    for (unsigned i = 0; i < 8; ++i) v |= static_cast<std::uint64_t>(in[i]) << (8U * i);
    return v;
}

inline void encodeHeader(const FrameHeader& header, unsigned char* out) noexcept {
    putU32(out, header.length);
    putU32(out + 4, header.stream);
    out[8] = static_cast<unsigned char>(header.type);
    out[9] = static_cast<unsigned char>(header.channel);
    out[10] = 0;
    out[11] = 0;
}

/// Returns false if the bytes are no header of this protocol; then the connection is unusable.
inline bool decodeHeader(const unsigned char* in, FrameHeader& header) noexcept {
    header.length = getU32(in);
    header.stream = getU32(in + 4);
    header.type = static_cast<FrameType>(in[8]);
    header.channel = static_cast<Channel>(in[9]);
    return header.length <= kMaxPayload && in[8] >= 1 && in[8] <= 8 && in[9] <= 3 && in[10] == 0 &&
           in[11] == 0;
}

}  // namespace hearth::agent
