#include "controller/egress/policy/IpAddress.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace hearth::egress {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
constexpr unsigned kMappedBits = 96;

}  // namespace

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
    // inet_pton() takes exactly the standard spellings, but wants a terminated string.
    const std::string word(text);
    if (word.size() != std::strlen(word.c_str())) return std::nullopt;
    IpAddress out;
    if (word.find(':') != std::string::npos) {
        if (::inet_pton(AF_INET6, word.c_str(), out.bytes_.data()) != 1) return std::nullopt;
        return out;
    }
    std::copy(kMapped.begin(), kMapped.end(), out.bytes_.begin());
    if (::inet_pton(AF_INET, word.c_str(), out.bytes_.data() + kMapped.size()) != 1) {
        return std::nullopt;
    }
    return out;
}

std::optional<IpAddress> IpAddress::of(const sockaddr& address) {
    IpAddress out;
    if (address.sa_family == AF_INET) {
        sockaddr_in v4{};
        std::memcpy(&v4, &address, sizeof(v4));
        std::copy(kMapped.begin(), kMapped.end(), out.bytes_.begin());
        std::memcpy(out.bytes_.data() + kMapped.size(), &v4.sin_addr, 4);
        return out;
    }
    if (address.sa_family == AF_INET6) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, &address, sizeof(v6));
        std::memcpy(out.bytes_.data(), &v6.sin6_addr, out.bytes_.size());
        return out;
    }
    return std::nullopt;
}

bool IpAddress::isV4() const noexcept {
    return std::equal(kMapped.begin(), kMapped.end(), bytes_.begin());
}

std::string IpAddress::text() const {
    char out[INET6_ADDRSTRLEN] = {};
    if (isV4()) {
        ::inet_ntop(AF_INET, bytes_.data() + kMapped.size(), out, sizeof(out));
    } else {
        ::inet_ntop(AF_INET6, bytes_.data(), out, sizeof(out));
    }
    return out;
}

sockaddr_storage IpAddress::socketAddress(std::uint16_t port, socklen_t& length) const {
    sockaddr_storage out{};
    if (isV4()) {
        sockaddr_in v4{};
        v4.sin_family = AF_INET;
        v4.sin_port = htons(port);
        std::memcpy(&v4.sin_addr, bytes_.data() + kMapped.size(), 4);
        length = sizeof(v4);
        std::memcpy(&out, &v4, sizeof(v4));
    } else {
        sockaddr_in6 v6{};
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(port);
        std::memcpy(&v6.sin6_addr, bytes_.data(), bytes_.size());
        length = sizeof(v6);
        std::memcpy(&out, &v6, sizeof(v6));
    }
    return out;
}

std::optional<IpRange> IpRange::parse(std::string_view text) {
    const std::size_t slash = text.find('/');
    const std::string_view address = text.substr(0, slash);
    const std::optional<IpAddress> base = IpAddress::parse(address);
    if (!base) return std::nullopt;
    const bool v4 = address.find(':') == std::string_view::npos;
    const unsigned most = v4 ? 32 : 128;
    unsigned bits = most;
    if (slash != std::string_view::npos) {
        const std::string_view digits = text.substr(slash + 1);
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), bits);
        if (error != std::errc{} || end != digits.data() + digits.size() || bits > most) {
            return std::nullopt;
        }
    }
    IpRange out;
    out.base_ = *base;
    out.bits_ = v4 ? bits + kMappedBits : bits;
    return out;
}

bool IpRange::contains(const IpAddress& address) const noexcept {
    const auto& a = base_.bytes();
    const auto& b = address.bytes();
    const std::size_t whole = bits_ / 8;
    if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(whole), b.begin())) {
        return false;
    }
    const unsigned rest = bits_ % 8;
    if (rest == 0) return true;
    const auto mask = static_cast<std::uint8_t>(0xFF00U >> rest);
    return (a[whole] & mask) == (b[whole] & mask);
}

}  // namespace hearth::egress
