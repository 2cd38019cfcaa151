#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::egress {

/// An IPv4 or IPv6 address; IPv4 is kept as its mapped form (::ffff:a.b.c.d), so the two spellings
/// of one address are equal and are checked by the same ranges.
class IpAddress {
public:
    IpAddress() = default;

    /// Accepts the two standard spellings: four decimal numbers without leading zeros, or RFC 4291
    /// text without zone. Other spellings that C libraries accept ("127.1", "0x7f000001") fail.
    static std::optional<IpAddress> parse(std::string_view text);
    /// Reads AF_INET and AF_INET6 addresses; nullopt for any other family.
    static std::optional<IpAddress> of(const sockaddr& address);

    bool isV4() const noexcept;
    std::string text() const;
    const std::array<std::uint8_t, 16>& bytes() const noexcept { return bytes_; }
    /// Ready for connect(); `length` receives the size.
    sockaddr_storage socketAddress(std::uint16_t port, socklen_t& length) const;

    bool operator==(const IpAddress&) const = default;

private:
    std::array<std::uint8_t, 16> bytes_{};
};

/// A range of addresses: "10.0.0.0/8", "2000::/3", or one address.
class IpRange {
public:
    static std::optional<IpRange> parse(std::string_view text);

    bool contains(const IpAddress& address) const noexcept;
    /// The length of the prefix in the mapped form: 0 to 128.
    unsigned bits() const noexcept { return bits_; }
    bool operator==(const IpRange&) const = default;

private:
    IpAddress base_;
    unsigned bits_ = 0;
};

}  // namespace hearth::egress
