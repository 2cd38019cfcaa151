#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/Version.h"
#include "controller/egress/credentials/TlsAuthority.h"
#include "pool/runtime/kubernetes/client/KubernetesClient.h"
#include "tests/support/Support.h"
#include "tests/support/kubernetes/FakeApiServer.h"

using namespace hearth;
using namespace hearth::pool::kubernetes;
using test::FakeApiServer;
using Kind = KubeErrorKind;

namespace {

constexpr const char* kConfigs = "/api/v1/configmaps";
const KubeResource kResource{.plural = "configmaps", .ns = "x"};

Json configNamed(const std::string& name) {
    return {{"metadata", {{"name", name}, {"namespace", "x"}}}, {"data", {{"a", "1"}}}};
}

struct Called {
    Called() { server.addKind(kConfigs); }
    ManualClock clock;
    FakeApiServer server;
    ClusterAccess access{{.url = server.url(), .token = {.text = "t"}}, clock};
    KubernetesClient client{access};
};

}  // namespace

TEST_CASE("an object is created, read, changed and deleted", "[unit][kubernetes]") {
    Called c;
    const auto created = c.client.create(kResource, configNamed("a"));
    REQUIRE(created);
    CHECK_FALSE(created.value()["metadata"]["uid"].get<std::string>().empty());
    CHECK(c.client.get(kResource, "a").value() == created.value());
    const auto merged =
        c.client.patch(kResource, "a", PatchKind::Merge, {{"data", {{"b", "2"}, {"a", nullptr}}}});
    REQUIRE(merged);
    CHECK(merged.value()["data"] == Json{{"b", "2"}});
    const Json operations = Json::array({{{"op", "test"}, {"path", "/data/b"}, {"value", "2"}},
                                         {{"op", "add"}, {"path", "/data/c"}, {"value", "3"}}});
    const auto patched = c.client.patch(kResource, "a", PatchKind::Json, operations);
    REQUIRE(patched);
    CHECK(patched.value()["data"]["c"] == "3");
    CHECK(c.client.remove(kResource, "a"));
    CHECK(c.client.get(kResource, "a").failed(Kind::NotFound));
    CHECK(c.server.seen().front().header("user-agent") == std::string("hearth/") + kHearthVersion);
    CHECK(c.server.seen().front().header("authorization") == "Bearer t");
}

TEST_CASE("a name that the server generates is returned", "[unit][kubernetes]") {
    Called c;
    const auto made = c.client.create(kResource, {{"metadata", {{"generateName", "ev-"}}}});
    REQUIRE(made);
    CHECK(made.value()["metadata"]["name"].get<std::string>().starts_with("ev-"));
}

TEST_CASE("refusals are values of different kinds", "[unit][kubernetes]") {
    Called c;
    const Json first = c.client.create(kResource, configNamed("a")).value();
    CHECK(c.client.create(kResource, configNamed("a")).failed(Kind::AlreadyExists));
    REQUIRE(c.client.replace(kResource, first));
    CHECK(c.client.replace(kResource, first).failed(Kind::Conflict));  // its version is too old now
    const Json wrong = Json::array({{{"op", "test"}, {"path", "/data/a"}, {"value", "2"}}});
    CHECK(c.client.patch(kResource, "a", PatchKind::Json, wrong).failed(Kind::Invalid));
    CHECK(
        c.client.patch(kResource, "a", PatchKind::Merge, {{"metadata", {{"resourceVersion", "1"}}}})
            .failed(Kind::Conflict));
    const auto unknown = c.client.get({.group = "hearth.dev", .plural = "sandboxpools"}, "p");
    CHECK(unknown.failed(Kind::NotFound));
    CHECK(c.client.replace(kResource, Json::object()).failed(Kind::BadRequest));
}

TEST_CASE("only the object with the given uid and version is deleted, with the given options",
          "[unit][kubernetes]") {
    Called c;
    const Json first = c.client.create(kResource, configNamed("a")).value();
    const std::string uid = first["metadata"]["uid"];
    CHECK(c.client.remove(kResource, "a", {.uid = "another"}).failed(Kind::Conflict));
    CHECK(c.client.remove(kResource, "a", {.uid = uid, .resource_version = "1"})
              .failed(Kind::Conflict));
    CHECK(c.server.count(kConfigs) == 1);
    CHECK(c.client.remove(kResource, "a",
                          {.uid = uid, .propagation = "Foreground", .grace_seconds = 0}));
    CHECK(c.server.count(kConfigs) == 0);
    const Json sent = parseJson(c.server.seen("delete").back().body);
    CHECK(sent["propagationPolicy"] == "Foreground");
    CHECK(sent["gracePeriodSeconds"] == 0);
    // Without a name, the path would select all objects.
    CHECK(c.client.remove(kResource, "").failed(Kind::BadRequest));
    CHECK(c.server.seen("delete").size() == 3);
}

TEST_CASE("the status is written apart from the rest", "[unit][kubernetes]") {
    Called c;
    Json object = c.client.create(kResource, configNamed("a")).value();
    object["data"]["a"] = "changed";
    object["status"]["ready"] = 3;
    object = c.client.replaceStatus(kResource, object).value();
    CHECK(object["data"]["a"] == "1");
    CHECK(object["status"]["ready"] == 3);
    CHECK(c.server.seen("update").back().path == "/api/v1/namespaces/x/configmaps/a/status");
}

TEST_CASE("a list comes page by page, by selectors", "[unit][kubernetes]") {
    Called c;
    for (const char* name : {"a", "b", "c"}) c.server.put(kConfigs, configNamed(name));
    const ObjectPage first = c.client.list(kResource, {.limit = 2}).value();
    CHECK(first.items.size() == 2);
    CHECK(first.resource_version == c.server.version());
    REQUIRE_FALSE(first.next.empty());
    const ObjectPage rest =
        c.client.list(kResource, {.limit = 2, .continue_from = first.next}).value();
    CHECK(rest.items.size() == 1);
    CHECK(rest.next.empty());
    CHECK(c.client.list(kResource, {.field_selector = "metadata.name=b"}).value().items.size() ==
          1);
    c.server.compact();
    const auto late = c.client.list(kResource, {.limit = 2, .continue_from = first.next});
    CHECK(late.failed(Kind::Gone));
}

TEST_CASE("a call is repeated once after a 401, with a token that was read anew",
          "[unit][kubernetes]") {
    const test::TempDir dir;
    test::writeText(dir.file("token"), "old");
    const ManualClock clock;
    FakeApiServer server;
    server.addKind(kConfigs);
    server.acceptOnly("new");
    ClusterAccess access({.url = server.url(), .token = {.file = dir.file("token")}}, clock);
    KubernetesClient client(access);
    CHECK(client.create(kResource, configNamed("a")).failed(Kind::Unauthorized));
    CHECK(server.seen("create").size() == 1);  // there is no newer token to try
    test::writeText(dir.file("token"), "new");
    CHECK(client.create(kResource, configNamed("a")));
    CHECK(server.seen("create").size() == 3);
}

TEST_CASE("a call ends in time, and says that it may have been carried out", "[unit][kubernetes]") {
    std::atomic<bool> stop{false};
    const ManualClock clock;
    // A server that reads and never answers.
    test::HttpListener silent(nullptr, [](test::ServedConnection& connection) {
        while (connection.request()) {
        }
    });
    ClusterAccess access({.url = silent.url()}, clock);
    KubernetesClient client(access, 1);
    const auto late =
        client.create(kResource, configNamed("a"), {.timeout = std::chrono::milliseconds(50)});
    REQUIRE(late.failed(Kind::Timeout));
    CHECK(late.error().ambiguous);
    stop = true;
    CHECK(client.get(kResource, "a", {.stop = &stop}).failed(Kind::Stopped));
}

TEST_CASE("an unreachable server and a refusal are different errors", "[unit][kubernetes]") {
    Called c;
    c.server.shut();
    const auto away = c.client.create(kResource, configNamed("a"));
    REQUIRE(away.failed(Kind::Unreachable));
    CHECK_FALSE(away.error().ambiguous);
}

TEST_CASE("an answer that is no JSON object, or leads elsewhere, is not believed",
          "[unit][kubernetes]") {
    Called c;
    for (const char* body : {"", "[]", "{", "<html>"}) {
        c.server.answerNext("get", {.status = 200, .body = body});
        CHECK(c.client.get(kResource, "a").failed(Kind::Malformed));
    }
    c.server.answerNext("get", {.status = 302, .body = "", .headers = {{"Location", "/x"}}});
    CHECK(c.client.get(kResource, "a").failed(Kind::Malformed));
}

TEST_CASE("many threads share a few connections", "[unit][kubernetes]") {
    std::atomic<int> connections{0};
    const ManualClock clock;
    test::HttpListener server(nullptr, [&](test::ServedConnection& connection) {
        ++connections;
        while (connection.request()) {
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
        }
    });
    ClusterAccess access({.url = server.url()}, clock);
    KubernetesClient client(access, 2);
    std::atomic<int> good{0};
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 8; ++i) {
            threads.emplace_back([&] {
                for (int n = 0; n < 25; ++n) good += client.get(kResource, "a") ? 1 : 0;
            });
        }
    }
    CHECK(good == 200);
    CHECK(connections <= 2);
}

TEST_CASE("the API server must have a certificate of our authority for its address",
          "[unit][kubernetes]") {
    egress::TlsAuthority authority({"127.0.0.1", "other.test"});
    egress::TlsAuthority stranger({"127.0.0.1"});
    const ManualClock clock;
    const auto ask = [&](egress::TlsAuthority& signer, const std::string& host,
                         const std::string& trusted) {
        FakeApiServer server(signer.serverFor(host));
        server.addKind(kConfigs);
        server.put(kConfigs, configNamed("a"));
        ClusterAccess access(
            {.url = server.url(), .authority = {.text = trusted}, .token = {.text = "t"}}, clock);
        KubernetesClient client(access);
        const auto got = client.get(kResource, "a");
        return got ? std::string("trusted") : got.error().message;
    };
    const auto has = [](const std::string& text, const std::string& part) {
        INFO(text);
        CHECK(text.find(part) != std::string::npos);
    };
    CHECK(ask(authority, "127.0.0.1", authority.certificatePem()) == "trusted");
    CHECK(ask(authority, "127.0.0.1", stranger.certificatePem() + authority.certificatePem()) ==
          "trusted");
    has(ask(stranger, "127.0.0.1", authority.certificatePem()), "not accepted");
    // The name counts on this machine, too.
    has(ask(authority, "other.test", authority.certificatePem()), "it is not for 127.0.0.1");
    has(ask(authority, "127.0.0.1", ""), "not accepted");
}

TEST_CASE("a client certificate identifies the caller", "[unit][kubernetes]") {
    egress::TlsAuthority authority({"127.0.0.1"});
    const std::shared_ptr<SSL_CTX> context = authority.serverFor("127.0.0.1");
    ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                         [](int, X509_STORE_CTX*) { return 1; });
    FakeApiServer server(context);
    server.addKind(kConfigs);
    server.put(kConfigs, configNamed("a"));
    const ManualClock clock;
    ClusterConfig config{.url = server.url(), .authority = {.text = authority.certificatePem()}};
    ClusterAccess nobody(config, clock);
    CHECK(KubernetesClient(nobody).get(kResource, "a").failed(Kind::Unreachable));
    // This text contains both certificate and key.
    config.certificate = config.key = {.text = authority.privatePem()};
    ClusterAccess somebody(config, clock);
    CHECK(KubernetesClient(somebody).get(kResource, "a"));
    config.key = {.text = egress::TlsAuthority({"127.0.0.1"}).privatePem()};
    CHECK(test::codeOf([&] { ClusterAccess mixed(config, clock); }) == ErrorCode::InvalidArgument);
}
