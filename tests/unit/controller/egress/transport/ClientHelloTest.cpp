#include <openssl/ssl.h>

#include <catch2/catch.hpp>
#include <memory>

#include "controller/egress/transport/ClientHello.h"

// The messages of a real TLS library, and an attacker's changes to them.

namespace hearth::egress {
namespace {

using State = ClientHello::State;

/// Returns the first flight of OpenSSL's client.
std::string hello(const char* name) {
    const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context(
        ::SSL_CTX_new(::TLS_client_method()), &::SSL_CTX_free);
    const std::unique_ptr<SSL, decltype(&::SSL_free)> ssl(::SSL_new(context.get()), &::SSL_free);
    BIO* in = ::BIO_new(::BIO_s_mem());
    BIO* out = ::BIO_new(::BIO_s_mem());
    ::SSL_set_bio(ssl.get(), in, out);
    if (name != nullptr)
        ::SSL_ctrl(ssl.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                   const_cast<char*>(name));
    ::SSL_connect(ssl.get());
    char* bytes = nullptr;
    const long size = ::BIO_get_mem_data(out, &bytes);
    return {bytes, static_cast<std::size_t>(size)};
}

/// Returns the same handshake in records of `size` bytes.
std::string inRecords(const std::string& one, std::size_t size) {
    std::string out;
    for (std::size_t at = 5; at < one.size(); at += size) {
        const std::string part = one.substr(at, size);
        out += std::string("\x16\x03\x01", 3);
        out += static_cast<char>(part.size() >> 8U);
        out += static_cast<char>(part.size() & 0xFFU);
        out += part;
    }
    return out;
}

}  // namespace

TEST_CASE("the server's name is read from the hello of a TLS client", "[unit][egress]") {
    const std::string bytes = hello("Api.Example.COM");
    const ClientHello whole = parseClientHello(bytes);
    CHECK(whole.state == State::Complete);
    CHECK(whole.server_name == "api.example.com");
    CHECK(parseClientHello(hello(nullptr)).state == State::Complete);
    CHECK(parseClientHello(hello(nullptr)).server_name.empty());
    for (const std::size_t size : {1U, 7U, 100U}) {
        const ClientHello split = parseClientHello(inRecords(bytes, size));
        CHECK(split.state == State::Complete);
        CHECK(split.server_name == "api.example.com");
    }
}

TEST_CASE("an incomplete hello is waited for", "[unit][egress]") {
    const std::string bytes = hello("api.example.com");
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        REQUIRE(parseClientHello(bytes.substr(0, size)).state == State::Incomplete);
    }
}

TEST_CASE("bytes that are no hello are refused, however they begin", "[unit][egress]") {
    for (const std::string& text :
         {std::string("GET / HTTP/1.1\r\n"), std::string("SSH-2.0-OpenSSH_9.2\r\n"),
          std::string("\x15\x03\x01\x00\x02\x01\x00", 7),
          std::string("\x16\x02\x01\x00\x05xxxxx", 10), std::string("\x16\x03\x01\x00\x00", 5),
          std::string("\x16\x03\x01\x00\x04\x02\x00\x00\x00", 9),
          std::string("\x16\x03\x01\x00\x04\x01\xFF\xFF\xFF", 9)}) {
        CHECK(parseClientHello(text).state == State::NotTls);
    }
}

TEST_CASE("every hello with one byte changed is read without harm", "[unit][egress]") {
    const std::string bytes = hello("api.example.com");
    unsigned other = 0;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        for (const char change : {'\x00', '\xFF', '\x01'}) {
            std::string changed = bytes;
            changed[at] = change;
            const ClientHello read = parseClientHello(changed);
            if (read.state != State::Complete || read.server_name != "api.example.com") ++other;
        }
    }
    CHECK(other > 20);  // the changes hit the name, lengths and types, too
}

TEST_CASE("a hello that names two servers is refused", "[unit][egress]") {
    // The extension appended once more; all three lengths around it grow.
    std::string bytes = hello("api.example.com");
    const std::string name(
        "\x00\x00\x00\x0C\x00\x0A\x00\x00\x07"
        "evil.io",
        16);
    bytes += name;
    const auto grow = [&](std::size_t at, std::size_t count) {
        std::size_t value = 0;
        for (std::size_t i = 0; i < count; ++i) {
            value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
        }
        value += name.size();
        for (std::size_t i = 0; i < count; ++i) {
            bytes[at + count - 1 - i] = static_cast<char>(value >> (8U * i));
        }
    };
    grow(3, 2);
    grow(6, 3);
    std::size_t at = 5 + 4 + 34;
    at += 1 + static_cast<unsigned char>(bytes[at]);
    at += 2 +
          (static_cast<unsigned char>(bytes[at]) << 8U | static_cast<unsigned char>(bytes[at + 1]));
    at += 1 + static_cast<unsigned char>(bytes[at]);
    grow(at, 2);
    CHECK(parseClientHello(bytes).state == State::NotTls);
}

}  // namespace hearth::egress
