#pragma once

#include <sodium.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// The keys of connections between server and agent over a network, on libsodium. Nothing here
/// throws, because the agent is built without exceptions.
namespace hearth::agent::secure {

/// Makes libsodium ready. Call it before anything else of this room; a second call costs nothing.
/// False if the system has no source of random bytes. Thread-safe.
bool initialise() noexcept;

/// Bytes that are wiped from memory at their end. Move-only.
template <std::size_t N>
class SecretBytes {
public:
    static constexpr std::size_t kSize = N;

    SecretBytes() noexcept = default;
    SecretBytes(const SecretBytes&) = delete;
    SecretBytes& operator=(const SecretBytes&) = delete;
    SecretBytes(SecretBytes&& other) noexcept : bytes_(other.bytes_) { other.wipe(); }
    SecretBytes& operator=(SecretBytes&& other) noexcept {
        if (this != &other) {
            bytes_ = other.bytes_;
            other.wipe();
        }
        return *this;
    }
    ~SecretBytes() { wipe(); }

    unsigned char* data() noexcept { return bytes_.data(); }
    const unsigned char* data() const noexcept { return bytes_.data(); }

private:
    void wipe() noexcept { sodium_memzero(bytes_.data(), bytes_.size()); }

    std::array<unsigned char, N> bytes_{};
};

/// A public key, written as 64 hexadecimal digits. `Of` keeps the kinds of keys apart.
template <typename Of>
struct PublicKey {
    std::array<unsigned char, 32> bytes{};

    /// Nullopt if the text is not exactly one key.
    static std::optional<PublicKey> parse(std::string_view text) noexcept {
        PublicKey key;
        std::size_t length = 0;
        const char* end = nullptr;
        if (text.size() != 64 ||
            sodium_hex2bin(key.bytes.data(), key.bytes.size(), text.data(), text.size(), nullptr,
                           &length, &end) != 0 ||
            length != key.bytes.size()) {
            return std::nullopt;
        }
        return key;
    }
    std::string text() const {
        std::array<char, 65> hex{};
        sodium_bin2hex(hex.data(), hex.size(), bytes.data(), bytes.size());
        return hex.data();
    }
    friend bool operator==(const PublicKey&, const PublicKey&) = default;
};

/// Ed25519: the only thing that an agent knows about its server.
using ServerPublicKey = PublicKey<class ServerKey>;
/// X25519: a server's knowledge of one agent, from a source that its tenant cannot write to.
using AgentPublicKey = PublicKey<class AgentIdentity>;

/// The server's Ed25519 key. All replicas have the same one; it never enters a sandbox.
class ServerKey {
public:
    static ServerKey generate();
    /// From the 32 secret bytes (RFC 8032) in hexadecimal digits; nullopt if the text is no seed.
    static std::optional<ServerKey> parse(std::string_view seed);

    const ServerPublicKey& publicKey() const noexcept { return public_; }
    const unsigned char* secret() const noexcept { return secret_.data(); }

private:
    ServerKey() = default;

    SecretBytes<crypto_sign_ed25519_SECRETKEYBYTES> secret_;
    ServerPublicKey public_;
};

/// The X25519 key of one agent for its whole life. Its public half distinguishes this agent from a
/// tenant on its port, and from another Pod that has got its address.
class AgentIdentity {
public:
    static AgentIdentity generate();
    /// From exactly 32 secret bytes; nullopt for another number.
    static std::optional<AgentIdentity> load(std::string_view secret);

    const AgentPublicKey& publicKey() const noexcept { return public_; }
    const SecretBytes<crypto_scalarmult_SCALARBYTES>& secret() const noexcept { return secret_; }

private:
    AgentIdentity() = default;
    void derivePublic() noexcept;

    SecretBytes<crypto_scalarmult_SCALARBYTES> secret_;
    AgentPublicKey public_;
};

}  // namespace hearth::agent::secure
