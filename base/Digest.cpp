#include "base/Digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <stdexcept>

namespace hearth {
namespace {

void require(bool done) {
    if (!done) throw std::runtime_error("SHA-2 is not available");
}

}  // namespace

Digest sha256(std::string_view data) {
    Digest out{};
    require(::EVP_Digest(data.data(), data.size(), out.data(), nullptr, ::EVP_sha256(), nullptr) ==
            1);
    return out;
}

Digest hmacSha256(std::string_view key, std::string_view data) {
    Digest out{};
    unsigned size = 0;
    require(::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
                   reinterpret_cast<const unsigned char*>(data.data()), data.size(), out.data(),
                   &size) != nullptr);
    return out;
}

std::string toHex(const std::uint8_t* data, std::size_t size) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    std::string out;
    out.reserve(size * 2);
    for (std::size_t i = 0; i < size; ++i) {
        out.push_back(kDigits[data[i] >> 4U]);
        out.push_back(kDigits[data[i] & 15U]);
    }
    return out;
}

std::string toHex(const Digest& digest) {
    return toHex(digest.data(), digest.size());
}

std::string rawBytes(const Digest& digest) {
    return {digest.begin(), digest.end()};
}

void RunningDigest::Free::operator()(evp_md_ctx_st* context) const {
    ::EVP_MD_CTX_free(context);
}

RunningDigest::RunningDigest(Kind kind) : context_(::EVP_MD_CTX_new()) {
    const EVP_MD* algorithm = kind == Kind::Sha512 ? ::EVP_sha512() : ::EVP_sha256();
    require(context_ && ::EVP_DigestInit_ex(context_.get(), algorithm, nullptr) == 1);
}

void RunningDigest::add(std::string_view bytes) {
    require(::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string RunningDigest::hex() {
    std::uint8_t out[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    require(::EVP_DigestFinal_ex(context_.get(), out, &size) == 1);
    return toHex(out, size);
}

}  // namespace hearth
