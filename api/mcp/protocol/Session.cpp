#include "api/mcp/protocol/Session.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "api/mcp/protocol/Era.h"
#include "base/Digest.h"
#include "base/Ids.h"

namespace hearth::mcp {
namespace {

constexpr char kLayout = 2;
/// Session ids contain one bit for each index: add at the end, never reorder.
constexpr std::array<const char*, 3> kCapabilities = {"elicitation", "sampling", "roots"};
constexpr std::size_t kRandomSize = 12;
constexpr std::size_t kBodySize = 3 + 8 + kRandomSize;
constexpr std::size_t kTagSize = 16;

std::string digestBytes(const Digest& digest, std::size_t size) {
    return {digest.begin(), digest.begin() + static_cast<std::ptrdiff_t>(size)};
}

}  // namespace

SessionIds::SessionIds(std::string_view secret_key, SessionRevocations& revocations,
                       const Clock& clock)
    : key_(digestBytes(hmacSha256(secret_key, "mcp session"), 32)),
      revocations_(revocations),
      clock_(clock) {}

std::string SessionIds::sign(std::string_view body, std::string_view owner) const {
    std::string text(body);
    text += owner;
    return digestBytes(hmacSha256(key_, text), kTagSize);
}

std::string SessionIds::issue(std::string_view owner, std::string_view protocol_version,
                              const Json& client_capabilities) {
    const auto place =
        std::find(kLegacyVersions.begin(), kLegacyVersions.end(), negotiate(protocol_version)) -
        kLegacyVersions.begin();
    unsigned bits = 0;
    for (std::size_t i = 0; i < kCapabilities.size(); ++i) {
        if (member(client_capabilities, kCapabilities[i]) != nullptr) bits |= 1U << i;
    }
    std::string body{kLayout, static_cast<char>(place), static_cast<char>(bits)};
    const auto issued = static_cast<std::uint64_t>(toUnixMillis(clock_.wall()));
    for (int shift = 56; shift >= 0; shift -= 8) body += static_cast<char>(issued >> shift & 0xFF);
    std::array<char, kRandomSize> noise{};
    randomBytes(noise.data(), noise.size());
    body.append(noise.data(), noise.size());
    return base64UrlEncode(body + sign(body, owner));
}

std::optional<SessionFacts> SessionIds::check(std::string_view id, std::string_view owner) const {
    std::string bytes;
    if (!base64UrlDecode(id, bytes) || bytes.size() != kBodySize + kTagSize) return std::nullopt;
    const std::string_view body(bytes.data(), kBodySize);
    const std::string_view tag(bytes.data() + kBodySize, kTagSize);
    if (!constantTimeEqual(tag, sign(body, owner))) return std::nullopt;
    const auto place = static_cast<unsigned char>(body[1]);
    if (body[0] != kLayout || place >= kLegacyVersions.size()) return std::nullopt;
    std::uint64_t issued = 0;
    for (std::size_t i = 3; i < 11; ++i)
        issued = issued << 8U | static_cast<unsigned char>(body[i]);
    const WallTime expiry = fromUnixMillis(static_cast<std::int64_t>(issued)) + kMaxAge;
    if (clock_.wall() > expiry || revocations_.contains(id)) return std::nullopt;
    SessionFacts facts{kLegacyVersions[place], Json::object(), expiry};
    for (std::size_t i = 0; i < kCapabilities.size(); ++i) {
        if ((static_cast<unsigned char>(body[2]) >> i & 1U) != 0) {
            facts.client_capabilities[kCapabilities[i]] = Json::object();
        }
    }
    return facts;
}

}  // namespace hearth::mcp
