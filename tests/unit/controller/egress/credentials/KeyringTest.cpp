#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/Json.h"
#include "base/JsonText.h"
#include "controller/egress/credentials/KeyringFactory.h"
#include "controller/egress/credentials/SecretMasker.h"
#include "controller/egress/transport/TlsStream.h"

namespace hearth::egress {
namespace {

std::vector<FieldError> errorsOf(const std::string& text, CredentialSource source) {
    std::vector<FieldError> errors;
    readCredential(parseJson(text), source, "/c", errors);
    return errors;
}

Credential read(const std::string& text) {
    std::vector<FieldError> errors;
    Credential out = readCredential(parseJson(text), CredentialSource::Claim, "/c", errors);
    REQUIRE(errors.empty());
    return out;
}

Destination at(const char* text) {
    return *Destination::parse(text, 443);
}

/// True if a client that trusts the authority accepts its certificate for this host.
bool trusts(TlsAuthority& authority, const std::string& host, const std::string& served) {
    int pair[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    const Fd client(pair[0]);
    std::string heard;
    std::thread server([&, fd = Fd(pair[1])] {
        SocketStream below(fd.get());
        try {
            TlsStream tls(*authority.serverFor(served), below, "", std::chrono::seconds(5));
            char text[16];
            heard.assign(text, tls.read(text, sizeof(text), std::chrono::seconds(5)));
            tls.write("pong", std::chrono::seconds(5));
        } catch (const StreamBroken&) {  // the client refused
        }
    });
    const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context(
        ::SSL_CTX_new(::TLS_client_method()), ::SSL_CTX_free);
    const std::string pem = authority.certificatePem();
    const std::unique_ptr<BIO, decltype(&::BIO_free)> memory(
        ::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), ::BIO_free);
    const std::unique_ptr<X509, decltype(&::X509_free)> root(
        ::PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr), ::X509_free);
    ::X509_STORE_add_cert(::SSL_CTX_get_cert_store(context.get()), root.get());
    ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    const std::unique_ptr<SSL, decltype(&::SSL_free)> ssl(::SSL_new(context.get()), ::SSL_free);
    X509_VERIFY_PARAM* const param = ::SSL_get0_param(ssl.get());
    ::X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
    if (IpAddress::parse(host)) {
        ::X509_VERIFY_PARAM_set1_ip_asc(param, host.c_str());
    } else {
        ::SSL_set1_host(ssl.get(), host.c_str());
    }
    const int flags = ::fcntl(client.get(), F_GETFL);
    ::fcntl(client.get(), F_SETFL, flags & ~O_NONBLOCK);
    ::SSL_set_fd(ssl.get(), client.get());
    const bool shaken = ::SSL_connect(ssl.get()) == 1;
    char answer[8] = {};
    if (shaken) {
        ::SSL_write(ssl.get(), "ping", 4);
        ::SSL_read(ssl.get(), answer, sizeof(answer) - 1);
    }
    ::shutdown(client.get(), SHUT_RDWR);
    server.join();
    return shaken && heard == "ping" && std::string(answer) == "pong";
}

}  // namespace

TEST_CASE("a secret is overwritten however it is cut", "[unit][egress]") {
    std::mt19937 random(7);
    const std::vector<std::string> hidden{"abcabd", "bdxyz123", "abcabdabcabd!"};
    for (int i = 0; i < 3'000; ++i) {
        std::string text;
        while (text.size() < 60) {
            const std::size_t what = random() % 6;
            text += what < 3    ? hidden[what]
                    : what == 3 ? "abcab"
                                : std::string(1, "abdx"[random() % 4]);
        }
        std::string wanted = text;
        for (const std::string& secret : hidden) {
            for (std::size_t at = text.find(secret); at != std::string::npos;
                 at = text.find(secret, at + 1)) {
                wanted.replace(at, secret.size(), std::string(secret.size(), '*'));
            }
        }
        SecretMasker masker(hidden);
        std::string got;
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t n = 1 + random() % 9;
            got += masker.pass(std::string_view(text).substr(begin, n));
            REQUIRE(got.size() + 13 * 40 + 9 > begin);
            begin += n;
        }
        got += masker.rest();
        REQUIRE(got == wanted);
    }
}

TEST_CASE("the sizes of output that is held back reveal nothing of the secret", "[unit][egress]") {
    // Text that begins like a secret comes in the same pieces as text that does not.
    for (const std::string& text :
         {std::string("~tok-1234"), std::string("tok-12345678 tok-1"), std::string("a\ntok-1\n"),
          std::string(100, 't'), std::string("data: tok-1234567\n\n")}) {
        std::vector<std::vector<std::size_t>> sizes;
        for (const char* secret : {"tok-12345678", "xyz-abcdefgh", "tttttttttttt"}) {
            SecretMasker masker({secret});
            sizes.emplace_back();
            for (const char c : text) sizes.back().push_back(masker.pass({&c, 1}).size());
            sizes.back().push_back(masker.rest().size());
        }
        CHECK(sizes[0] == sizes[1]);
        CHECK(sizes[0] == sizes[2]);
    }
    SecretMasker masker({"87654321"});
    CHECK(masker.pass("a line\n\n") == "a line\n\n");        // an empty line holds nothing back
    CHECK(masker.pass(std::string(400, '0')).size() == 81);  // forty bytes per character at most
    CHECK(masker.pass("\n\n").size() == 321);
}

namespace {

std::string maskedOnce(const std::string& secret, const std::string& text) {
    SecretMasker masker({secret});
    const std::string first = masker.pass(text);
    return first + masker.rest();
}

std::string speltAs(char c, unsigned long how, std::mt19937& random) {
    char text[16];
    const unsigned number = static_cast<unsigned char>(c);
    const char* const formats[] = {"%%%02X", "%%%02x", "\\u%04X", "\\u%04x",
                                   "&#%u;",  "&#x%X;", "&#%05u;", "&#X%x;"};
    if (how < std::size(formats)) {
        std::snprintf(text, sizeof(text), formats[how], number);
        return text;
    }
    if (how == 8) return std::string("\\") + c;
    if (how == 9 && c == ' ') return "+";
    if (how == 9 && c == '&') return "&amp;";
    if (how == 9 && c == '<') return "&lt;";
    if (how == 9 && c == '>') return "&GT;";
    if (how == 9 && c == '"') return "&quot;";
    if (how == 9 && c == '\'') return "&apos;";
    if (how == 10 && std::isalpha(static_cast<int>(number)) != 0) {
        return {static_cast<char>(random() % 2 == 0 ? std::tolower(c) : std::toupper(c))};
    }
    return {c};
}

}  // namespace

TEST_CASE("a secret is found in every spelling of a server", "[unit][egress]") {
    const std::string secret = "aGVh/cnRo+ab~01 23!'()*&<>\"\\Z==";
    for (const char* written :
         {// RFC 3986, Python's quote(), a form, lower-cased, JSON, JSON of PHP, HTML
          "aGVh%2FcnRo%2Bab~01%2023%21%27%28%29%2A%26%3C%3E%22%5CZ%3D%3D",
          "aGVh/cnRo%2Bab~01%2023%21%27%28%29%2A%26%3C%3E%22%5CZ%3D%3D",
          "aGVh%2FcnRo%2Bab%7E01+23%21%27%28%29*%26%3C%3E%22%5CZ%3D%3D",
          "agvh%2fcnro%2bab~01%2023!'()*%26%3c%3e%22%5cz%3d%3d",
          R"(aGVh/cnRo+ab~01 23!'()*&<>\"\\Z==)",
          R"(aGVh\/cnRo+ab~01 23!\u0027()*\u0026\u003c\u003E\"\\Z==)",
          "aGVh/cnRo+ab~01 23!&#39;()*&amp;&lt;&gt;&quot;\\Z==",
          "aGVh&#x2F;cnRo&#43;ab~01 23!&#039;()*&amp;&lt;&gt;&#34;\\Z&#x3D;&#061;"}) {
        CHECK(maskedOnce(secret, "x=" + std::string(written) + ";y") ==
              "x=" + std::string(std::string_view(written).size(), '*') + ";y");
    }
    CHECK(maskedOnce("100%41x!", "100%41x! 100Ax! 100%2541x!") ==
          "******** 100Ax! **********");  // the apparent escape is part of the secret
    CHECK(maskedOnce("12345678", "1234567 8, &#300000000000000;, &#;, %, %1, \\, \\u00, &") ==
          "1234567 8, &#300000000000000;, &#;, %, %1, \\, \\u00, &");
}

TEST_CASE("random secrets in random mixtures of spellings are overwritten, and nothing else",
          "[unit][egress]") {
    std::mt19937 random(11);
    for (int i = 0; i < 2'000; ++i) {
        std::string secret;
        const std::size_t size = 8 + random() % (i % 10 == 0 ? 300 : 30);
        while (secret.size() < size) secret += static_cast<char>(0x20 + random() % 0x5F);
        std::string text = "[\n";
        std::string wanted = text;
        for (int times = 0; times < 2; ++times) {
            std::string written;
            for (const char c : secret) written += speltAs(c, random() % 14, random);
            text += written + "\n]\n";
            wanted += std::string(written.size(), '*') + "\n]\n";
        }
        SecretMasker masker({secret});
        std::string got;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t n = 1 + random() % 40;
            got += masker.pass(std::string_view(text).substr(at, n));
            at += n;
        }
        INFO(secret);
        REQUIRE(got + masker.rest() == wanted);
    }
}

TEST_CASE("a long secret is looked for in parts, each of them whole", "[unit][egress]") {
    std::string secret;
    for (int i = 0; i < 50; ++i) secret += std::to_string(100 + i);  // 150 characters
    CHECK(maskedOnce(secret, "<" + secret + ">") == "<" + std::string(150, '*') + ">");
    CHECK(maskedOnce(secret, secret.substr(0, 63)) == secret.substr(0, 63));
}

TEST_CASE("a credential is read with its defaults and shown without its value", "[unit][egress]") {
    const Credential bearer = read(R"({"host":"API.example.com","value":"12345678"})");
    CHECK(bearer.destination == at("api.example.com:443"));
    CHECK(bearer.form == "Bearer {}");
    CHECK(
        dumpJson(credentialJson(bearer)) ==
        R"({"host":"api.example.com:443","scheme":"https","header":"Authorization","template":"Bearer {}"})");
    CHECK(read(R"({"host":"a.example","scheme":"http","secret":"s"})").destination.port == 80);
    CHECK(read(R"({"host":"a.example","header":"X-Key","secret":"s"})").form == "{}");
    CHECK(collide(read(R"({"host":"a.example","secret":"s"})"),
                  read(R"({"host":"a.example:443","basic":"u","secret":"t"})")));
    CHECK_FALSE(collide(read(R"({"host":"a.example","secret":"s"})"),
                        read(R"({"host":"a.example","query":"k","secret":"t"})")));
}

TEST_CASE("an invalid credential is refused with its wrong field", "[unit][egress]") {
    const std::vector<std::pair<const char*, const char*>> wrong{
        {R"([])", "/c"},
        {R"({"secret":"s"})", "/c/host"},
        {R"({"host":"*.example","secret":"s"})", "/c/host"},
        {R"({"host":"a.example/x","secret":"s"})", "/c/host"},
        {R"({"host":"user@a.example","secret":"s"})", "/c/host"},
        {R"({"host":"127.1","secret":"s"})", "/c/host"},
        {R"({"host":"a.example","scheme":"ftp","secret":"s"})", "/c/scheme"},
        {R"({"host":"a.example","header":"X: y","secret":"s"})", "/c/header"},
        {R"({"host":"a.example","header":"host","secret":"s"})", "/c/header"},
        {R"({"host":"a.example","header":"Range","secret":"s"})", "/c/header"},
        {R"({"host":"a.example","template":"x","secret":"s"})", "/c/template"},
        {R"({"host":"a.example","template":"{} {}","secret":"s"})", "/c/template"},
        {R"({"host":"a.example","template":"a\r\nb: {}","secret":"s"})", "/c/template"},
        {R"({"host":"a.example","basic":"a:b","secret":"s"})", "/c/basic"},
        {R"({"host":"a.example","query":"a&b","secret":"s"})", "/c/query"},
        {R"({"host":"a.example","query":"a","template":"{}","secret":"s"})", "/c/template"},
        {R"({"host":"a.example","query":"a","header":"b","secret":"s"})", "/c"},
        {R"({"host":"a.example"})", "/c/secret"},
        {R"({"host":"a.example","secret":"../s"})", "/c/secret"},
        {R"({"host":"a.example","secret":".s"})", "/c/secret"},
        {R"({"host":"a.example","secret":"a/b"})", "/c/secret"},
        {R"({"host":"a.example","value":"1234567"})", "/c/value"},
        {R"({"host":"a.example","value":"12345678\n"})", "/c/value"},
        {R"({"host":"a.example","secret":"s","value":"12345678"})", "/c"},
        {R"({"host":"a.example","secret":"s","x":1})", "/c/x"},
        {R"({"host":1,"secret":"s"})", "/c/host"},
    };
    for (const auto& [text, pointer] : wrong) {
        INFO(text);
        const std::vector<FieldError> errors = errorsOf(text, CredentialSource::Claim);
        REQUIRE_FALSE(errors.empty());
        CHECK(errors.back().pointer == pointer);
    }
    const auto pools =
        errorsOf(R"({"host":"a.example","value":"12345678"})", CredentialSource::Pool);
    REQUIRE(pools.size() == 1);
    CHECK(pools[0].pointer == "/c/value");
}

TEST_CASE(
    "a keyring gives each destination its own credential, and is restored from its saved form",
    "[unit][egress]") {
    const KeyringFactory keyrings("");
    const std::vector<Credential> all{
        read(R"({"host":"a.example","value":"pass word/1"})"),
        read(R"({"host":"a.example","query":"key","value":"second-1"})"),
        read(R"({"host":"b.example:8443","basic":"me","value":"third-12"})")};
    const auto made = keyrings.make({}, all);
    REQUIRE(made.keyring != nullptr);
    CHECK(made.keyring->covers(at("a.example"), true));
    CHECK_FALSE(made.keyring->covers(at("a.example"), false));
    CHECK_FALSE(made.keyring->covers(at("a.example:8443"), true));
    CHECK_FALSE(made.keyring->covers(at("x.a.example"), true));
    const CredentialGrant grant = made.keyring->grant(at("a.example"), true);
    CHECK(grant.headers == std::vector<std::pair<std::string, std::string>>{
                               {"Authorization", "Bearer pass word/1"}});
    CHECK(grant.hidden == std::vector<std::string>{"pass word/1", "second-1"});
    CHECK(withQuery("/x?a=1&key=2&k%65y=3&b", grant.query) == "/x?a=1&b&key=second-1");
    CHECK(withQuery("/x", grant.query) == "/x?key=second-1");
    CHECK(withQuery("/x?", grant.query) == "/x?key=second-1");
    CHECK(made.keyring->grant(at("b.example:8443"), true).headers[0].second ==
          "Basic bWU6dGhpcmQtMTI=");

    const auto again = keyrings.again({}, made.kept);
    REQUIRE(again != nullptr);
    CHECK(again->credentials() == all);
    CHECK(again->authority()->certificatePem() == made.keyring->authority()->certificatePem());
    CHECK(keyrings.make({}, {}).keyring == nullptr);
    CHECK(keyrings.make({}, {}).kept.is_null());
    CHECK(keyrings.again({}, Json()) == nullptr);
}

TEST_CASE("an authority certifies its own hosts only, also after it was saved and read",
          "[unit][egress]") {
    TlsAuthority made({"api.example", "192.0.2.7", "2001:db8::1"});
    const std::unique_ptr<TlsAuthority> read = TlsAuthority::fromPem(made.privatePem());
    for (TlsAuthority* authority : {&made, read.get()}) {
        CHECK(trusts(*authority, "api.example", "api.example"));
        CHECK(trusts(*authority, "192.0.2.7", "192.0.2.7"));
        CHECK(trusts(*authority, "2001:db8::1", "2001:db8::1"));
        CHECK_FALSE(trusts(*authority, "api.example", "192.0.2.7"));
        // Even if it issued a certificate for another host, no client would accept it.
        CHECK_FALSE(trusts(*authority, "other.example", "other.example"));
        CHECK_FALSE(trusts(*authority, "192.0.2.8", "192.0.2.8"));
    }
    TlsAuthority names(std::vector<std::string>{"api.example"});
    CHECK_FALSE(trusts(names, "192.0.2.8", "192.0.2.8"));
    CHECK_FALSE(trusts(names, "2001:db8::1", "2001:db8::1"));
    TlsAuthority addresses(std::vector<std::string>{"192.0.2.7"});
    CHECK(trusts(addresses, "192.0.2.7", "192.0.2.7"));
    CHECK_FALSE(trusts(addresses, "api.example", "api.example"));
    CHECK_THROWS(TlsAuthority::fromPem("no PEM"));
}

}  // namespace hearth::egress
