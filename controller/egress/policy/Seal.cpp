#include "controller/egress/policy/Seal.h"

#include <openssl/evp.h>

#include <climits>
#include <memory>
#include <stdexcept>

#include "base/Ids.h"

namespace hearth {
namespace {

constexpr std::size_t kKey = 32;
constexpr std::size_t kNonce = 12;
constexpr std::size_t kTag = 16;

struct FreeContext {
    void operator()(EVP_CIPHER_CTX* context) const { ::EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

const unsigned char* bytesOf(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* roomOf(std::string& text, std::size_t at = 0) {
    return reinterpret_cast<unsigned char*>(text.data()) + at;
}

void check(std::string_view key, std::string_view context, std::size_t size) {
    if (key.size() != kKey || context.size() > INT_MAX || size > INT_MAX) {
        throw std::logic_error("nothing of this size is sealed");
    }
}

}  // namespace

std::string seal(std::string_view key, std::string_view context, std::string_view plain) {
    check(key, context, plain.size());
    std::string out(kNonce + plain.size() + kTag, '\0');
    randomBytes(out.data(), kNonce);
    const Cipher cipher(::EVP_CIPHER_CTX_new());
    int n = 0;
    const bool done =
        cipher != nullptr &&
        ::EVP_EncryptInit_ex(cipher.get(), ::EVP_aes_256_gcm(), nullptr, bytesOf(key),
                             roomOf(out)) == 1 &&
        ::EVP_EncryptUpdate(cipher.get(), nullptr, &n, bytesOf(context),
                            static_cast<int>(context.size())) == 1 &&
        ::EVP_EncryptUpdate(cipher.get(), roomOf(out, kNonce), &n, bytesOf(plain),
                            static_cast<int>(plain.size())) == 1 &&
        ::EVP_EncryptFinal_ex(cipher.get(), roomOf(out, kNonce + plain.size()), &n) == 1 &&
        ::EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTag,
                              roomOf(out, kNonce + plain.size())) == 1;
    if (!done) throw std::runtime_error("AES-256-GCM is not available");
    return base64UrlEncode(out);
}

std::optional<std::string> unseal(std::string_view key, std::string_view context,
                                  std::string_view sealed) {
    std::string bytes;
    if (!base64UrlDecode(sealed, bytes) || bytes.size() < kNonce + kTag) return std::nullopt;
    check(key, context, bytes.size());
    std::string out(bytes.size() - kNonce - kTag, '\0');
    const Cipher cipher(::EVP_CIPHER_CTX_new());
    int n = 0;
    const bool sound = cipher != nullptr &&
                       ::EVP_DecryptInit_ex(cipher.get(), ::EVP_aes_256_gcm(), nullptr,
                                            bytesOf(key), bytesOf(bytes)) == 1 &&
                       ::EVP_DecryptUpdate(cipher.get(), nullptr, &n, bytesOf(context),
                                           static_cast<int>(context.size())) == 1 &&
                       ::EVP_DecryptUpdate(cipher.get(), roomOf(out), &n, bytesOf(bytes) + kNonce,
                                           static_cast<int>(out.size())) == 1 &&
                       ::EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTag,
                                             roomOf(bytes, kNonce + out.size())) == 1 &&
                       ::EVP_DecryptFinal_ex(cipher.get(), roomOf(out, out.size()), &n) == 1;
    if (!sound) return std::nullopt;
    return out;
}

}  // namespace hearth
