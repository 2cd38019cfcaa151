#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace hearth {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(std::string_view data);
Digest hmacSha256(std::string_view key, std::string_view data);
/// Lower-case hex digits.
std::string toHex(const std::uint8_t* data, std::size_t size);
std::string toHex(const Digest& digest);
/// The digest's bytes as they are, for example as a key for another HMAC.
std::string rawBytes(const Digest& digest);

/// A digest of bytes that come in pieces. Not thread-safe.
class RunningDigest {
public:
    enum class Kind : std::uint8_t { Sha256, Sha512 };
    explicit RunningDigest(Kind kind = Kind::Sha256);

    void add(std::string_view bytes);
    /// Returns the digest of all added bytes in lower-case hex. Must be the last call.
    std::string hex();

private:
    struct Free {
        void operator()(evp_md_ctx_st* context) const;
    };
    std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace hearth
