#include <catch2/catch.hpp>

#include "pool/agent/secure/Keys.h"

using namespace hearth::agent::secure;

TEST_CASE("a public key is read from exactly its own text", "[unit][agent][secure]") {
    REQUIRE(initialise());
    const ServerPublicKey key = ServerKey::generate().publicKey();
    const std::string text = key.text();
    CHECK(text.size() == 64);
    CHECK(ServerPublicKey::parse(text) == key);
    CHECK_FALSE(ServerPublicKey::parse(""));
    CHECK_FALSE(ServerPublicKey::parse(text.substr(1)));
    CHECK_FALSE(ServerPublicKey::parse(text + "0"));
    CHECK_FALSE(ServerPublicKey::parse("g" + text.substr(1)));
    CHECK_FALSE(ServerPublicKey::parse(text.substr(1) + "\n"));
}

TEST_CASE("a server's key is made from its seed as RFC 8032 says", "[unit][agent][secure]") {
    REQUIRE(initialise());
    // RFC 8032, 7.1, test 1.
    const auto key =
        ServerKey::parse("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
    REQUIRE(key);
    CHECK(key->publicKey().text() ==
          "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    CHECK_FALSE(ServerKey::parse("9d61b19d"));
    CHECK_FALSE(ServerKey::parse(std::string(64, 'z')));
}

TEST_CASE("an agent's identity is made from its secret as RFC 7748 says", "[unit][agent][secure]") {
    REQUIRE(initialise());
    // RFC 7748, 6.1, Bob. A public key is read like any 32 bytes.
    const auto secret =
        AgentPublicKey::parse("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
    REQUIRE(secret);
    const std::string bytes(reinterpret_cast<const char*>(secret->bytes.data()), 32);
    const auto identity = AgentIdentity::load(bytes);
    REQUIRE(identity);
    CHECK(identity->publicKey().text() ==
          "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
    CHECK_FALSE(AgentIdentity::load(bytes.substr(1)));
    CHECK_FALSE(AgentIdentity::load(bytes + "x"));
}

TEST_CASE("secret bytes are gone once they were moved or have ended", "[unit][agent][secure]") {
    alignas(SecretBytes<32>) unsigned char place[sizeof(SecretBytes<32>)] = {};
    auto* secret = new (place) SecretBytes<32>();
    std::fill(secret->data(), secret->data() + 32, static_cast<unsigned char>(7));
    SecretBytes<32> taken = std::move(*secret);
    CHECK(taken.data()[31] == 7);
    CHECK(std::count(place, place + 32, 7) == 0);
    std::fill(secret->data(), secret->data() + 32, static_cast<unsigned char>(7));
    secret->~SecretBytes();
    CHECK(std::count(place, place + 32, 7) == 0);
}
