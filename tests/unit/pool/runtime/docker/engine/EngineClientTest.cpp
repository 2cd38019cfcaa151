#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "pool/runtime/docker/engine/EngineClient.h"
#include "tests/unit/pool/runtime/docker/FakeEngine.h"

using namespace hearth;
using namespace hearth::docker_test;
using namespace hearth::pool::docker;

namespace {

EngineAddress addressFrom(std::map<std::string, std::string> variables) {
    return engineAddress([&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
    });
}

/// Returns the code of the Error that `call` throws; nullopt for another exception or none.
template <typename Call>
std::optional<ErrorCode> codeOf(Call call) {
    try {
        call();
    } catch (const Error& e) {
        return e.code();
    } catch (const std::exception&) {
        return std::nullopt;
    }
    return std::nullopt;
}

}  // namespace

TEST_CASE("DOCKER_HOST is read as Docker reads it", "[unit][docker]") {
    CHECK(addressFrom({}).socket == "/var/run/docker.sock");
    CHECK(addressFrom({{"DOCKER_HOST", "unix:///run/x.sock"}}).socket == "/run/x.sock");

    const EngineAddress plain = addressFrom({{"DOCKER_HOST", "tcp://box:1234"}});
    CHECK((plain.host == "box" && plain.port == 1234 && !plain.tls));
    CHECK(addressFrom({{"DOCKER_HOST", "tcp://box"}}).port == 2375);

    const EngineAddress six = addressFrom({{"DOCKER_HOST", "tcp://[::1]:99"},
                                           {"DOCKER_TLS_VERIFY", "1"},
                                           {"DOCKER_CERT_PATH", "/certs"}});
    CHECK((six.host == "::1" && six.port == 99 && six.tls && six.verify));
    CHECK(six.certificates == "/certs");
    CHECK(six.text() == "tcp://[::1]:99");

    const EngineAddress unchecked =
        addressFrom({{"DOCKER_HOST", "tcp://box"}, {"DOCKER_TLS", "1"}, {"HOME", "/h"}});
    CHECK((unchecked.tls && !unchecked.verify && unchecked.port == 2376));
    CHECK(unchecked.certificates == "/h/.docker");

    for (const char* bad : {"ssh://box", "box", "tcp://", "tcp://box:0", "tcp://box:x",
                            "tcp://[::1", "unix://relative"}) {
        INFO(bad);
        CHECK(codeOf([&] { addressFrom({{"DOCKER_HOST", bad}}); }) == ErrorCode::InvalidArgument);
    }
}

TEST_CASE("the client speaks the newest version that both sides know", "[unit][docker]") {
    CHECK(negotiateApi("1.41") == 41);
    CHECK(negotiateApi("1.47") == 47);
    CHECK(negotiateApi("1.99") == kNewestApi);
    CHECK(codeOf([] { negotiateApi("1.40"); }) == ErrorCode::Unsupported);
    CHECK(codeOf([] { negotiateApi("2.0"); }) == ErrorCode::Unsupported);
    CHECK_THROWS_AS(negotiateApi(""), std::runtime_error);

    FakeEngine engine([](const Seen& seen) {
        return seen.target == "/_ping" ? pong("1.44") : answer(200, R"({"a":1})");
    });
    EngineClient client(engine.address());
    CHECK(client.get("/info", soon()).at("a") == 1);
    CHECK(client.get("/info", soon()).at("a") == 1);
    const std::vector<Seen> seen = engine.seen();
    REQUIRE(seen.size() == 3);  // its version is requested once
    CHECK(seen[1].target == "/v1.44/info");
    CHECK(seen[2].target == "/v1.44/info");
}

TEST_CASE("a body is sent as JSON and an answer may come in chunks", "[unit][docker]") {
    FakeEngine engine([](const Seen& seen) -> std::string {
        if (seen.target == "/_ping") return pong();
        return "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
               "5;x=y\r\n{\"Id\"\r\n6\r\n:\"abc\"\r\n1\r\n}\r\n0\r\n\r\n";
    });
    EngineClient client(engine.address());
    const Json made = client.post("/containers/create?name=n", {{"Image", "i"}}, soon());
    CHECK(made.at("Id") == "abc");
    CHECK(engine.seen().back().method == "POST");
    CHECK(engine.seen().back().body == R"({"Image":"i"})");
}

TEST_CASE("an archive is streamed in chunks", "[unit][docker]") {
    FakeEngine engine(
        [](const Seen& seen) { return seen.target == "/_ping" ? pong() : answer(200, "{}"); });
    EngineClient client(engine.address());
    int pieces = 2;
    EngineRequest request{.method = "POST", .target = "/images/load", .body = {}};
    request.archive = [&](char* out, std::size_t) -> std::size_t {
        if (pieces-- == 0) return 0;
        out[0] = 'x';
        return 1;
    };
    client.call(std::move(request), soon());
    CHECK(engine.seen().back().body == "1\r\nx\r\n1\r\nx\r\n0\r\n\r\n");
}

TEST_CASE("a refusal of the Engine becomes an error that says what to do", "[unit][docker]") {
    int status = 0;
    std::string message;
    FakeEngine engine([&](const Seen& seen) {
        return seen.target == "/_ping" ? pong() : answer(status, dumpJson({{"message", message}}));
    });
    EngineClient client(engine.address());
    const auto refused = [&](int with, const std::string& why) {
        status = with;
        message = why;
        return codeOf([&] { client.post("/x", nullptr, soon()); });
    };
    CHECK(refused(404, "No such container: x") == ErrorCode::NotFound);
    CHECK(refused(409, "The name is already in use by container y") == ErrorCode::Conflict);
    CHECK(refused(500, "write /a: no space left on device") == ErrorCode::DiskFull);
    CHECK(refused(400, "invalid mount config: bind source path does not exist: /a") ==
          ErrorCode::Unsupported);
    CHECK(refused(400, "client version 1.51 is too old. Minimum supported") ==
          ErrorCode::Unsupported);
    CHECK(refused(503, "starting") == ErrorCode::Unavailable);
    CHECK(refused(500, "something else") == std::nullopt);  // not for clients
    status = 404;
    CHECK_FALSE(client.find("/x", soon()));
}

TEST_CASE("a missing daemon and a forbidden one are different errors", "[unit][docker]") {
    EngineAddress nobody;
    nobody.socket = "/nonexistent/docker.sock";
    EngineClient client(nobody);
    try {
        client.ping(soon());
        FAIL("it answered");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::Unavailable);
        CHECK(std::string(e.what()).find("does not run") != std::string::npos);
        CHECK_FALSE(e.hint().empty());
    }
}

TEST_CASE("a daemon that hangs costs a caller its deadline, and the next one less",
          "[unit][docker]") {
    std::atomic<bool> hangs{true};
    FakeEngine engine([&](const Seen& seen) -> std::string {
        if (seen.target == "/_ping" && !hangs) return pong();
        if (seen.target == "/_ping" && seen.method == "GET") return hangs ? "" : pong();
        return answer(200, "{}");
    });
    EngineClient client(engine.address());
    const auto fifty = std::chrono::milliseconds(50);
    CHECK(codeOf([&] { client.get("/info", soon(fifty)); }) == ErrorCode::Deadline);
    // Now the daemon must answer a ping before any other request.
    CHECK(codeOf([&] { client.get("/info", soon(fifty)); }) == ErrorCode::Deadline);
    for (const Seen& seen : engine.seen()) CHECK(seen.target == "/_ping");
    hangs = false;
    CHECK(client.get("/info", soon()) == Json::object());
}

TEST_CASE("answers that are no HTTP, cut short or endless are refused", "[unit][docker]") {
    std::string reply;
    FakeEngine engine([&](const Seen& seen) { return seen.target == "/_ping" ? pong() : reply; });
    EngineClient client(engine.address());
    for (const std::string& bad :
         {std::string("SSH-2.0-x\r\n\r\n"), std::string("HTTP/1.1 2x0 OK\r\n\r\n"),
          std::string("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"),
          std::string("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"),
          std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
          std::string("HTTP/1.1 200 OK\r\nno colon\r\n\r\n"),
          "HTTP/1.1 200 OK\r\nX: " + std::string(200'000, 'x'), answer(200, "{\"a\":")}) {
        INFO(bad.substr(0, 60));
        reply = bad;
        CHECK_THROWS(client.get("/info", soon()));
    }
}

TEST_CASE("a stream begins with the bytes that came with its head", "[unit][docker]") {
    std::string reply;
    FakeEngine engine([&](const Seen& seen) { return seen.target == "/_ping" ? pong() : reply; });
    EngineClient client(engine.address());
    const std::string much(100'000, 'x');
    for (const char* head : {"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n",
                             "HTTP/1.1 200 OK\r\nContent-Type: raw\r\n\r\n"}) {
        reply = head + much;
        EngineClient::Attachment attached = client.attach("/exec/e/start", Json::object(), soon());
        std::string all = attached.early;
        char piece[4096];
        while (const std::size_t n = client.read(attached.stream, piece, sizeof piece, soon())) {
            all.append(piece, n);
        }
        CHECK(all == much);
    }
    reply = answer(404, "{}");
    CHECK(codeOf([&] { client.attach("/exec/e/start", Json::object(), soon()); }) ==
          ErrorCode::NotFound);
}

TEST_CASE("a flag ends a call that waits", "[unit][docker]") {
    std::atomic<bool> stop{false};
    FakeEngine engine([&](const Seen& seen) -> std::string {
        if (seen.target == "/_ping") return pong();
        stop = true;
        return "";
    });
    EngineClient client(engine.address());
    CHECK(codeOf([&] { client.call({.target = "/wait", .body = {}, .stop = &stop}, soon()); }) ==
          ErrorCode::Unavailable);
}

TEST_CASE("a gate admits its number of callers and no more", "[unit][docker]") {
    Gate gate(2);
    const Gate::Place first = gate.enter(soon());
    {
        const Gate::Place second = gate.enter(soon());
        CHECK(codeOf([&] { const auto third = gate.enter(soon(std::chrono::milliseconds(1))); }) ==
              ErrorCode::Deadline);
    }
    const Gate::Place again = gate.enter(soon());
}
