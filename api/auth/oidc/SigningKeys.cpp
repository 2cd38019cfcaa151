#include "api/auth/oidc/SigningKeys.h"

#include <cjose/jws.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/Error.h"

namespace hearth::auth {
namespace {

constexpr std::size_t kMostKeys = 64;
constexpr std::size_t kLongestId = 256;
constexpr std::size_t kLeastRsaBits = 2'048;

}  // namespace

SigningKeys SigningKeys::parse(const Json& set) {
    if (!set.is_object() || !set.contains("keys") || !set["keys"].is_array() ||
        set["keys"].size() > kMostKeys) {
        throw Error(ErrorCode::InvalidArgument, "the answer is not a set of keys (JWKS)");
    }
    SigningKeys out;
    for (const Json& jwk : set["keys"]) {
        const std::string id = textAt(jwk, "kid");
        if (id.empty() || id.size() > kLongestId) continue;
        if (std::optional<Key> key = usable(jwk)) out.keys_.insert_or_assign(id, std::move(*key));
    }
    return out;
}

std::optional<SigningKeys::Key> SigningKeys::usable(const Json& jwk) {
    const std::string use = textAt(jwk, "use");
    if (!use.empty() && use != "sig") return std::nullopt;
    const std::string text = dumpJson(jwk);
    cjose_err problem{};
    Key key{SigningAlgorithm::Rs256,
            {::cjose_jwk_import(text.data(), text.size(), &problem), [](cjose_jwk_t* made) {
                 if (made != nullptr) ::cjose_jwk_release(made);
             }}};
    if (!key.jwk) return std::nullopt;
    const std::size_t bits = ::cjose_jwk_get_keysize(key.jwk.get(), &problem);
    switch (::cjose_jwk_get_kty(key.jwk.get(), &problem)) {
        case CJOSE_JWK_KTY_RSA:
            if (bits < kLeastRsaBits) return std::nullopt;
            break;
        case CJOSE_JWK_KTY_EC:
            if (textAt(jwk, "crv") != "P-256") return std::nullopt;
            key.algorithm = SigningAlgorithm::Es256;
            break;
        default:
            return std::nullopt;
    }
    const std::string meant = textAt(jwk, "alg");
    if (!meant.empty() && meant != kSigningAlgorithms.of(key.algorithm)) return std::nullopt;
    return key;
}

std::optional<TokenFault> SigningKeys::verify(const Jwt& token) const {
    const auto found = keys_.find(textAt(token.header, "kid"));
    if (found == keys_.end()) return TokenFault::UnknownKey;
    const Key& key = found->second;
    if (textAt(token.header, "alg") != kSigningAlgorithms.of(key.algorithm)) return TokenFault::Key;
    cjose_err problem{};
    const std::unique_ptr<cjose_jws_t, decltype(&::cjose_jws_release)> signed_text(
        ::cjose_jws_import(token.text.data(), token.text.size(), &problem), ::cjose_jws_release);
    if (!signed_text) return TokenFault::Malformed;
    if (!::cjose_jws_verify(signed_text.get(), key.jwk.get(), &problem)) {
        return TokenFault::Signature;
    }
    return std::nullopt;
}

}  // namespace hearth::auth
