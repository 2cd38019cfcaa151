#include "pool/agent/secure/Keys.h"

#include <cstring>

namespace hearth::agent::secure {

bool initialise() noexcept {
    return sodium_init() >= 0;
}

ServerKey ServerKey::generate() {
    ServerKey key;
    crypto_sign_ed25519_keypair(key.public_.bytes.data(), key.secret_.data());
    return key;
}

std::optional<ServerKey> ServerKey::parse(std::string_view seed) {
    constexpr std::size_t kDigits = std::size_t{2} * crypto_sign_ed25519_SEEDBYTES;
    SecretBytes<crypto_sign_ed25519_SEEDBYTES> bytes;
    std::size_t length = 0;
    const char* end = nullptr;
    if (seed.size() != kDigits ||
        sodium_hex2bin(bytes.data(), bytes.kSize, seed.data(), kDigits, nullptr, &length, &end) !=
            0 ||
        length != bytes.kSize) {
        return std::nullopt;
    }
    ServerKey key;
    crypto_sign_ed25519_seed_keypair(key.public_.bytes.data(), key.secret_.data(), bytes.data());
    return key;
}

AgentIdentity AgentIdentity::generate() {
    AgentIdentity identity;
    randombytes_buf(identity.secret_.data(), identity.secret_.kSize);
    identity.derivePublic();
    return identity;
}

std::optional<AgentIdentity> AgentIdentity::load(std::string_view secret) {
    AgentIdentity identity;
    if (secret.size() != identity.secret_.kSize) return std::nullopt;
    std::memcpy(identity.secret_.data(), secret.data(), secret.size());
    identity.derivePublic();
    return identity;
}

void AgentIdentity::derivePublic() noexcept {
    crypto_scalarmult_base(public_.bytes.data(), secret_.data());
}

}  // namespace hearth::agent::secure
