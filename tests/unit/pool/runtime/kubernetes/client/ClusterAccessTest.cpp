#include "base/Version.h"
#include "controller/egress/credentials/TlsAuthority.h"
#include "pool/runtime/kubernetes/client/ClusterAccess.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::pool::kubernetes;
using test::TempDir;
using test::writeText;

namespace {

/// The credentials of a Pod in a folder.
struct Mounted {
    Mounted() {
        writeText(dir.file("ca.crt"), egress::TlsAuthority({"127.0.0.1"}).certificatePem());
        writeText(dir.file("token"), "first\n");
    }
    ClusterConfig config() const {
        return {.url = "https://127.0.0.1:6443",
                .authority = {.file = dir.file("ca.crt")},
                .token = {.file = dir.file("token")}};
    }
    TempDir dir;
    ManualClock clock;
};

}  // namespace

TEST_CASE("a token is read again each minute", "[unit][kubernetes]") {
    Mounted m;
    ClusterAccess access(m.config(), m.clock);
    CHECK(access.credentials().authorization == "Bearer first");
    writeText(m.dir.file("token"), "second\n");
    m.clock.advance(std::chrono::seconds(59));
    CHECK(access.credentials().authorization == "Bearer first");
    m.clock.advance(std::chrono::seconds(1));
    CHECK(access.credentials().authorization == "Bearer second");
}

TEST_CASE("a token is read again at once after a refusal", "[unit][kubernetes]") {
    Mounted m;
    ClusterAccess access(m.config(), m.clock);
    const ClusterCredentials used = access.credentials();
    CHECK_FALSE(access.refused(used));
    writeText(m.dir.file("token"), "second\n");
    CHECK(access.refused(used));
    CHECK(access.credentials().authorization == "Bearer second");
    CHECK(access.refused(used));  // another caller was refused with the old one
    CHECK_FALSE(access.refused(access.credentials()));
}

TEST_CASE("a new authority makes new connections, a new token does not", "[unit][kubernetes]") {
    Mounted m;
    ClusterAccess access(m.config(), m.clock);
    const ClusterCredentials first = access.credentials();
    REQUIRE(first.tls);
    writeText(m.dir.file("token"), "second");
    m.clock.advance(std::chrono::minutes(1));
    CHECK(access.credentials().tls_version == first.tls_version);
    CHECK(access.credentials().tls == first.tls);
    writeText(m.dir.file("ca.crt"), egress::TlsAuthority({"127.0.0.1"}).certificatePem());
    m.clock.advance(std::chrono::minutes(1));
    CHECK(access.credentials().tls_version > first.tls_version);
    CHECK(access.credentials().tls != first.tls);
}

TEST_CASE("an unusable file keeps the value that was read before", "[unit][kubernetes]") {
    Mounted m;
    ClusterAccess access(m.config(), m.clock);
    const std::string authority = test::readText(m.dir.file("ca.crt"));
    for (const char* content : {"", "half a certificate"}) {
        writeText(m.dir.file("ca.crt"), content);
        writeText(m.dir.file("token"), "second");
        m.clock.advance(std::chrono::minutes(1));
        CHECK(access.credentials().authorization == "Bearer first");
    }
    writeText(m.dir.file("ca.crt"), authority);
    m.clock.advance(std::chrono::minutes(1));
    CHECK(access.credentials().authorization == "Bearer second");
}

TEST_CASE("a file that is missing at the start is an error with its name", "[unit][kubernetes]") {
    Mounted m;
    std::filesystem::remove(m.dir.file("token"));
    const Error missing = test::errorOf([&] { ClusterAccess access(m.config(), m.clock); });
    CHECK(std::string(missing.what()) == m.dir.file("token") + " is missing or empty");
    writeText(m.dir.file("token"), "t");
    writeText(m.dir.file("ca.crt"), "no certificate");
    CHECK(test::codeOf([&] { ClusterAccess access(m.config(), m.clock); }) ==
          ErrorCode::InvalidArgument);
}

TEST_CASE("a token never crosses a network in clear", "[unit][kubernetes]") {
    const ManualClock clock;
    for (const char* url : {"http://10.0.0.1:8080", "http://kubernetes.default.svc"}) {
        CHECK(test::codeOf([&] {
                  ClusterAccess access({.url = url, .token = {.text = "t"}}, clock);
              }) == ErrorCode::InvalidArgument);
        CHECK_NOTHROW(ClusterAccess({.url = url}, clock));
    }
    for (const char* url : {"http://127.0.0.1:8001", "http://[::1]:8001", "http://localhost"}) {
        CHECK_NOTHROW(ClusterAccess({.url = url, .token = {.text = "t"}}, clock));
    }
}

TEST_CASE("requests name this program, and go through no proxy of the environment",
          "[unit][kubernetes]") {
    const ManualClock clock;
    ClusterAccess access({.url = "http://10.0.0.1"}, clock);
    const http::ClientOptions options = access.clientOptions(access.credentials());
    CHECK(options.headers.front() == std::pair<std::string, std::string>(
                                         "User-Agent", std::string("hearth/") + kHearthVersion));
    CHECK(options.proxies.https.empty());
    CHECK(options.proxies.http.empty());
    CHECK(options.dead_peer > std::chrono::seconds(1));
}
