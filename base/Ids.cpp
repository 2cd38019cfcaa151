#include "base/Ids.h"

#include <openssl/crypto.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "base/Digest.h"
#include "base/Error.h"

namespace hearth {
namespace {

constexpr std::size_t kIdBytes = 16;

int sextet(char c, bool url) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == (url ? '-' : '+')) return 62;
    if (c == (url ? '_' : '/')) return 63;
    return -1;
}

std::string encode(std::string_view bytes, bool url) {
    static constexpr std::string_view kStandard =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static constexpr std::string_view kUrl =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const std::string_view alphabet = url ? kUrl : kStandard;
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
        std::uint32_t group = 0;
        for (std::size_t j = 0; j < 3; ++j) {
            group <<= 8U;
            if (j < left) group |= static_cast<std::uint8_t>(bytes[i + j]);
        }
        for (std::size_t j = 0; j <= left; ++j) {
            out.push_back(alphabet[(group >> (18U - 6U * j)) & 63U]);
        }
        if (!url) out.append(3 - left, '=');
    }
    return out;
}

bool decode(std::string_view text, std::string& out, bool url) {
    out.clear();
    if (!url) {
        if (text.size() % 4 != 0) return false;
        for (int i = 0; i < 2 && !text.empty() && text.back() == '='; ++i) text.remove_suffix(1);
    }
    if (text.size() % 4 == 1) return false;
    out.reserve(text.size() * 3 / 4);
    std::uint32_t group = 0;
    unsigned bits = 0;
    for (const char c : text) {
        const int value = sextet(c, url);
        if (value < 0) return false;
        group = (group << 6U) | static_cast<std::uint32_t>(value);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out.push_back(static_cast<char>((group >> bits) & 0xFFU));
        }
    }
    return (group & ((1U << bits) - 1U)) == 0;
}

}  // namespace

void randomBytes(void* out, std::size_t size) {
    auto* at = static_cast<std::uint8_t*>(out);
    while (size > 0) {
        const ssize_t got = ::getrandom(at, size, 0);
        if (got < 0) {
            if (errno == EINTR) continue;
            throwErrno("getrandom");
        }
        at += got;
        size -= static_cast<std::size_t>(got);
    }
}

std::string newId(std::string_view prefix) {
    std::array<std::uint8_t, kIdBytes> bytes{};
    randomBytes(bytes.data(), bytes.size());
    return std::string(prefix) + toHex(bytes.data(), bytes.size());
}

std::string derivedId(std::string_view prefix, std::string_view key,
                      std::initializer_list<std::string_view> parts) {
    std::string data;
    for (const std::string_view part : parts) {
        data.append(std::to_string(part.size())).append(":").append(part);
    }
    const Digest digest = hmacSha256(key, data);
    return std::string(prefix) + toHex(digest.data(), kIdBytes);
}

bool isId(std::string_view text, std::string_view prefix) {
    if (text.size() != prefix.size() + 2 * kIdBytes || !text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool constantTimeEqual(std::string_view a, std::string_view b) {
    return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string base64Encode(std::string_view bytes) {
    return encode(bytes, false);
}
bool base64Decode(std::string_view text, std::string& out) {
    return decode(text, out, false);
}
std::string base64UrlEncode(std::string_view bytes) {
    return encode(bytes, true);
}
bool base64UrlDecode(std::string_view text, std::string& out) {
    return decode(text, out, true);
}

}  // namespace hearth
