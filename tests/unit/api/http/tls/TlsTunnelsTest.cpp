#include <fcntl.h>
#include <linux/sockios.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include "api/http/tls/TlsTunnels.h"
#include "base/Error.h"
#include "controller/egress/credentials/TlsAuthority.h"
#include "tests/support/Sockets.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::api;

namespace {

using Bytes = std::string;

std::array<Fd, 2> pairOfSockets(int flags = 0) {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, ends.data()) == 0);
    return {Fd(ends[0]), Fd(ends[1])};
}

/// A client that speaks TLS and accepts every certificate.
class Client {
public:
    explicit Client(Fd fd, int version = 0, const char* ciphers = nullptr)
        : fd_(std::move(fd)),
          context_(::SSL_CTX_new(::TLS_client_method()), ::SSL_CTX_free),
          ssl_(nullptr, ::SSL_free) {
        if (version != 0) {
            ::SSL_CTX_set_security_level(context_.get(), 0);
            ::SSL_CTX_set_min_proto_version(context_.get(), version);
            ::SSL_CTX_set_max_proto_version(context_.get(), version);
        }
        if (ciphers != nullptr) ::SSL_CTX_set_cipher_list(context_.get(), ciphers);
        ssl_.reset(::SSL_new(context_.get()));
        ::SSL_set_fd(ssl_.get(), fd_.get());
        shaken_ = ::SSL_connect(ssl_.get()) == 1;
        ::ERR_clear_error();
    }
    bool shaken() const { return shaken_; }
    void write(std::string_view bytes) {
        std::size_t sent = 0;
        if (::SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sent) != 1 ||
            sent != bytes.size()) {
            throw std::runtime_error("the client cannot write");
        }
    }
    /// Reads until the other side's goodbye or `most` bytes. `goodbye` tells which came.
    Bytes read(std::size_t most) {
        Bytes all;
        std::array<char, 65'536> piece;
        while (all.size() < most) {
            std::size_t n = 0;
            const int result = ::SSL_read_ex(ssl_.get(), piece.data(),
                                             std::min(piece.size(), most - all.size()), &n);
            if (result != 1) {
                goodbye = ::SSL_get_error(ssl_.get(), result) == SSL_ERROR_ZERO_RETURN;
                break;
            }
            all.append(piece.data(), n);
        }
        return all;
    }
    bool isClosed() const {
        pollfd state{fd_.get(), 0, 0};
        return ::poll(&state, 1, 0) > 0;
    }
    void sayGoodbye() { ::SSL_shutdown(ssl_.get()); }
    Bytes serial() const {
        const std::unique_ptr<X509, decltype(&::X509_free)> shown(
            ::SSL_get1_peer_certificate(ssl_.get()), ::X509_free);
        const ASN1_INTEGER* const number = ::X509_get0_serialNumber(shown.get());
        return {reinterpret_cast<const char*>(::ASN1_STRING_get0_data(number)),
                static_cast<std::size_t>(::ASN1_STRING_length(number))};
    }
    bool goodbye = false;

private:
    Fd fd_;
    std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context_;
    std::unique_ptr<SSL, decltype(&::SSL_free)> ssl_;
    bool shaken_ = false;
};

Bytes pem(const std::function<int(BIO*)>& write) {
    const std::unique_ptr<BIO, decltype(&::BIO_free)> memory(::BIO_new(::BIO_s_mem()), ::BIO_free);
    REQUIRE(write(memory.get()) == 1);
    char* text = nullptr;
    const long size = ::BIO_get_mem_data(memory.get(), &text);
    return {text, static_cast<std::size_t>(size)};
}

struct CertificateFolder {
    CertificateFolder() { write(); }

    TlsFiles files() const { return {dir.path() + "/cert.pem", dir.path() + "/key.pem"}; }
    /// Replaces the certificate with a new one.
    void write() {
        const std::shared_ptr<SSL_CTX> server =
            egress::TlsAuthority({"127.0.0.1"}).serverFor("127.0.0.1");
        put("cert.pem", pem([&](BIO* out) {
                return ::PEM_write_bio_X509(out, ::SSL_CTX_get0_certificate(server.get()));
            }));
        put("key.pem", pem([&](BIO* out) {
                return ::PEM_write_bio_PrivateKey(out, ::SSL_CTX_get0_privatekey(server.get()),
                                                  nullptr, nullptr, 0, nullptr, nullptr);
            }));
    }
    void put(const std::string& name, const std::string& text) const {
        std::ofstream(dir.path() + "/new") << text;
        std::filesystem::rename(dir.path() + "/new", dir.path() + "/" + name);
    }
    /// Returns the client's end and the plain end. `buffer`: the kernel's buffer to the client.
    std::pair<Fd, Fd> connection(TlsTunnels& tunnels, int buffer = 0) {
        auto [client, server] = pairOfSockets();
        if (buffer > 0) {
            ::setsockopt(server.get(), SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
        }
        const int flags = ::fcntl(server.get(), F_GETFL);
        ::fcntl(server.get(), F_SETFL, flags | O_NONBLOCK);
        return {std::move(client), tunnels.take(std::move(server))};
    }
    std::size_t logged(const std::string& event) const {
        std::size_t count = 0;
        std::ifstream file(dir.path() + "/log");
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        for (std::size_t at = 0; (at = text.find(event, at)) != std::string::npos; ++at) ++count;
        return count;
    }

    test::TempDir dir;
    Fd log_file{
        ::open((dir.path() + "/log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0600)};
    metrics::Log log{log_file.get()};
    metrics::Metrics metrics;
    SystemClock clock;
};

}  // namespace

TEST_CASE("a tunnel decrypts a client's request and encrypts the answer", "[unit][http][tls]") {
    CertificateFolder at;
    TlsTunnels tunnels(at.files(), at.metrics, at.log, at.clock);
    auto [raw, plain] = at.connection(tunnels);
    Client client(std::move(raw));
    REQUIRE(client.shaken());
    const Bytes up = test::bytesOf(3'000'000);
    const Bytes down = test::bytesOf(2'500'000);
    Bytes got_up;
    {
        const std::jthread server([&, &socket = plain] {
            got_up = test::readFrom(socket, up.size());
            test::writeTo(socket, down);
        });
        client.write(up);
        CHECK(client.read(down.size()) == down);
    }
    CHECK(got_up == up);

    SECTION("an end of ours comes after the last byte, with a goodbye") {
        test::writeTo(plain, "the last");
        plain.reset();
        CHECK(client.read(100) == "the last");
        CHECK(client.goodbye);
    }
    SECTION("a client's goodbye is an end, and it can still be answered") {
        client.write("bye");
        client.sayGoodbye();
        CHECK(test::readFrom(plain, 100) == "bye");
        test::writeTo(plain, "good bye");
        plain.reset();
        CHECK(client.read(100) == "good bye");
    }
}

TEST_CASE("a client that does not read stops itself only", "[unit][http][tls]") {
    CertificateFolder at;
    TlsTunnels tunnels(at.files(), at.metrics, at.log, at.clock);
    auto [slow_raw, slow_plain] = at.connection(tunnels);
    const Client slow(std::move(slow_raw));
    const Bytes piece(65'536, 'x');
    pollfd room{slow_plain.get(), POLLOUT, 0};
    while (::poll(&room, 1, 300) > 0) {
        static_cast<void>(
            ::send(slow_plain.get(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    }
    for (int i = 0; i < 20; ++i) {
        auto [raw, plain] = at.connection(tunnels);
        Client client(std::move(raw));
        client.write("ping");
        CHECK(test::readFrom(plain, 4) == "ping");
        test::writeTo(plain, "pong");
        CHECK(client.read(4) == "pong");
    }
}

TEST_CASE("a client without TLS is disconnected, a silent one at the front's timeout",
          "[unit][http][tls]") {
    CertificateFolder at;
    TlsTunnels tunnels(at.files(), at.metrics, at.log, at.clock);
    auto [wrong, wrong_plain] = at.connection(tunnels);
    test::writeTo(wrong, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK_THAT(test::readFrom(wrong, 1'000),
               Catch::StartsWith("HTTP/1.1 400") && Catch::Contains("https://"));
    CHECK(test::readFrom(wrong_plain, 1).empty());
    auto [odd, odd_plain] = at.connection(tunnels);
    test::writeTo(odd, std::string(100, '\1'));
    CHECK(test::readFrom(odd_plain, 1).empty());
    auto [silent, silent_plain] = at.connection(tunnels);
    test::writeTo(silent_plain, "HTTP/1.1 408 Request Timeout\r\n\r\n");
    silent_plain.reset();
    CHECK(test::readFrom(silent, 1).empty());
    const std::string text = at.metrics.render();
    CHECK(text.find("hearth_tls_handshakes_total{result=\"failed\"} 3") != std::string::npos);
}

TEST_CASE("a handshake may come in pieces, wherever they are cut", "[unit][http][tls]") {
    CertificateFolder at;
    TlsTunnels tunnels(at.files(), at.metrics, at.log, at.clock);
    for (int i = 0; i < 20; ++i) {
        auto [raw, plain] = at.connection(tunnels);
        auto [client_end, middle] = pairOfSockets();
        std::jthread client_thread([&, end = std::move(client_end)]() mutable {
            Client client(std::move(end));
            if (client.shaken()) client.write("through");
            static_cast<void>(client.read(1));
        });
        const Bytes hello = test::readFrom(middle, 200);
        // The next byte would be the first letter of a method of HTTP.
        std::size_t cut = 1;
        while (cut < hello.size() && (hello[cut] < 'A' || hello[cut] > 'Z')) ++cut;
        test::writeTo(raw, hello.substr(0, cut));
        REQUIRE(test::eventually([&, &from = raw] {  // the server has read it
            int unread = 0;
            return ::ioctl(from.get(), SIOCOUTQ, &unread) == 0 && unread == 0;
        }));
        test::writeTo(raw, hello.substr(cut));
        std::jthread back([&, &from = raw, &to = middle] {
            std::array<char, 65'536> piece;
            ssize_t n = 0;
            while ((n = ::recv(from.get(), piece.data(), piece.size(), 0)) > 0) {
                test::writeTo(to, {piece.data(), static_cast<std::size_t>(n)});
            }
            ::shutdown(to.get(), SHUT_RDWR);
        });
        std::jthread forth([&, &from = middle, &to = raw] {
            std::array<char, 65'536> piece;
            ssize_t n = 0;
            while ((n = ::recv(from.get(), piece.data(), piece.size(), 0)) > 0) {
                test::writeTo(to, {piece.data(), static_cast<std::size_t>(n)});
            }
        });
        CHECK(test::readFrom(plain, 7) == "through");
        plain.reset();
    }
}

TEST_CASE("a client that sends after close_notify is disconnected", "[unit][http][tls]") {
    CertificateFolder at;
    ManualClock clock;
    TlsTunnels tunnels(at.files(), at.metrics, at.log, clock);
    auto [raw, plain] = at.connection(tunnels);
    Client client(std::move(raw));
    client.write("x");
    REQUIRE(test::readFrom(plain, 1) == "x");
    plain.reset();
    CHECK(client.read(1).empty());
    CHECK(client.goodbye);
    CHECK(test::eventually([&] {
        clock.advance(std::chrono::milliseconds(1));
        try {
            client.write("more");
        } catch (const std::runtime_error&) {
            return true;
        }
        return false;
    }));
}

TEST_CASE("clients that do not read their last bytes hold a bounded number of places",
          "[unit][http][tls]") {
    constexpr std::size_t kMany = 270;
    constexpr std::size_t kMostLeaving = 256;
    CertificateFolder at;
    TlsTunnels tunnels(at.files(), at.metrics, at.log, at.clock);
    std::vector<std::unique_ptr<Client>> clients;
    const Bytes answer(100'000, 'x');  // more than fits into the sockets to the client
    for (std::size_t i = 0; i < kMany; ++i) {
        auto [raw, plain] = at.connection(tunnels, 4'096);
        clients.push_back(std::make_unique<Client>(std::move(raw)));
        clients.back()->write("?");
        REQUIRE(test::readFrom(plain, 1) == "?");
        test::writeTo(plain, answer);
    }
    const auto let_go = [&] {
        return static_cast<std::size_t>(std::count_if(
            clients.begin(), clients.end(), [](const auto& each) { return each->isClosed(); }));
    };
    CHECK(test::eventually([&] { return let_go() == kMany - kMostLeaving; }));
    CHECK(clients.front()->isClosed());
    CHECK(clients.front()->read(answer.size()).size() < answer.size());
    CHECK_FALSE(clients.front()->goodbye);
    CHECK(clients.back()->read(answer.size()) == answer);
    CHECK(let_go() == kMany - kMostLeaving);
}

TEST_CASE("a client that reads none of its last bytes is disconnected", "[unit][http][tls]") {
    CertificateFolder at;
    ManualClock clock;
    TlsTunnels tunnels(at.files(), at.metrics, at.log, clock);
    auto [raw, plain] = at.connection(tunnels, 4'096);
    Client client(std::move(raw));
    client.write("?");
    REQUIRE(test::readFrom(plain, 1) == "?");
    test::writeTo(plain, Bytes(100'000, 'x'));
    plain.reset();
    CHECK(test::eventually([&] {
        clock.advance(std::chrono::milliseconds(1));
        return client.isClosed();
    }));
}

TEST_CASE("old TLS versions and ciphers are refused", "[unit][http][tls]") {
    CertificateFolder at;
    TlsTunnels tunnels(at.files(), at.metrics, at.log, at.clock);
    const auto speaks = [&](int version, const char* ciphers) {
        auto [raw, plain] = at.connection(tunnels);
        return Client(std::move(raw), version, ciphers).shaken();
    };
    CHECK(speaks(TLS1_3_VERSION, nullptr));
    CHECK(speaks(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256"));
    CHECK_FALSE(speaks(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA:AES128-SHA"));
    CHECK_FALSE(speaks(TLS1_1_VERSION, "ALL:@SECLEVEL=0"));
}

TEST_CASE("new clients get a new certificate, and an unusable one is never used",
          "[unit][http][tls]") {
    CertificateFolder at;
    TlsTunnels tunnels(at.files(), at.metrics, at.log, at.clock);
    const auto shown = [&] {
        auto [raw, plain] = at.connection(tunnels);
        return Client(std::move(raw)).serial();
    };
    const Bytes first = shown();
    auto [old_raw, old_plain] = at.connection(tunnels);
    Client old(std::move(old_raw));
    at.write();
    CHECK(test::eventually([&] { return shown() != first; }));
    const Bytes second = shown();
    at.put("cert.pem", "nonsense");
    CHECK(test::eventually([&] { return at.logged("tls.not_reloaded") > 0; }));
    CHECK(shown() == second);
    old.write("still");
    CHECK(test::readFrom(old_plain, 5) == "still");
}

TEST_CASE("an error names the certificate file that cannot be used", "[unit][http][tls]") {
    CertificateFolder at;
    const auto refusal = [&](const TlsFiles& files) -> std::string {
        try {
            const TlsTunnels tunnels(files, at.metrics, at.log, at.clock);
        } catch (const Error& e) {
            return e.what();
        }
        return "";
    };
    CHECK(refusal(at.files()).empty());
    CHECK_THAT(refusal({at.dir.path() + "/none", at.files().key}),
               Catch::Contains("--tls-cert") && Catch::Contains("/none: No such file"));
    CHECK_THAT(refusal({at.files().key + "x", at.files().key}), Catch::Contains("--tls-cert"));
    CertificateFolder other;
    CHECK_THAT(refusal({at.files().certificate, other.files().key}),
               Catch::Contains("--tls-key") && Catch::Contains("mismatch"));
    at.put("key.pem", "nonsense");
    CHECK_THAT(refusal(at.files()), Catch::Contains("--tls-key"));
}
