#include <atomic>
#include <thread>

#include "controller/egress/credentials/TlsAuthority.h"
#include "tests/support/Support.h"
#include "tests/unit/pool/runtime/kubernetes/client/ReflectorHarness.h"

using namespace hearth;
using namespace hearth::kubernetes_test;

namespace {

std::string event(const std::string& type, const std::string& name, const std::string& version) {
    return dumpJson({{"type", type},
                     {"object",
                      {{"metadata",
                        {{"namespace", "x"},
                         {"name", name},
                         {"uid", "u-" + name},
                         {"resourceVersion", version}}}}}});
}

std::string bookmark(const std::string& version) {
    return dumpJson(
        {{"type", "BOOKMARK"}, {"object", {{"metadata", {{"resourceVersion", version}}}}}});
}

}  // namespace

TEST_CASE("events change the cache in their order", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.server.put(kPods, podNamed("a"));
    h.list();
    h.server.put(kPods, podNamed("b"));
    h.server.put(kPods, podNamed("a", "changed"));
    h.server.remove(kPods, "x/b");
    h.follow();
    CHECK(h.takeTold() == Lines{"+b", "~a", "-b"});
    CHECK(h.cache.get("x/a")->at("metadata").at("labels").at("app") == "changed");
    CHECK(h.restarts.back() == RestartReason::Ended);
}

TEST_CASE("an object that leaves the selector is deleted from the cache", "[unit][kubernetes]") {
    ReflectorHarness h({.label_selector = "app=mine"});
    h.server.put(kPods, podNamed("a", "mine"));
    h.server.put(kPods, podNamed("other", "theirs"));
    h.list();
    CHECK(h.cache.size() == 1);
    CHECK(h.last("list").param("labelSelector") == "app=mine");
    h.server.put(kPods, podNamed("a", "theirs"));
    h.server.put(kPods, podNamed("other", "mine"));
    h.follow();
    CHECK(h.last("watch").param("labelSelector") == "app=mine");
    CHECK(h.takeTold() == Lines{"-a", "+other"});
}

TEST_CASE("after a clean end the next watch begins at once, from the last event",
          "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    h.server.put(kPods, podNamed("a"));
    const std::string version = h.server.version();
    h.follow();
    h.server.put(kPods, podNamed("b"));
    h.follow();
    CHECK(h.last("watch").param("resourceVersion") == version);
    CHECK(h.lists() == 1);
    CHECK(h.takeTold() == Lines{"+a", "+b"});
}

TEST_CASE("a bookmark moves the version and nothing else", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    h.server.planWatch({.lines = {event("ADDED", "a", "150"), bookmark("170")}, .end = End::Clean});
    h.step();
    CHECK(h.takeTold() == Lines{"+a"});
    h.server.answerNext("watch", FakeApiServer::status(500, "InternalError"));
    h.step(milliseconds(400));
    CHECK(h.last("watch").param("resourceVersion") == "170");
}

TEST_CASE("versions are never compared: a smaller one is as good", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    h.server.planWatch({.lines = {event("ADDED", "a", "opaque-9"), event("MODIFIED", "a", "3")},
                        .end = End::Clean});
    h.step();
    CHECK(h.takeTold() == Lines{"+a", "~a"});
    h.server.answerNext("watch", FakeApiServer::status(500, "InternalError"));
    h.step(milliseconds(400));
    CHECK(h.last("watch").param("resourceVersion") == "3");
}

TEST_CASE("a server that ends every watch at once is not called in a circle",
          "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    h.server.planWatch({.lines = {}, .end = End::Clean});
    h.step(milliseconds(400));
    h.server.planWatch({.lines = {}, .end = End::Clean});
    h.step(milliseconds(800));
}

TEST_CASE("after a break the next watch goes on from the last event, after growing pauses",
          "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    const auto [end, reason] = GENERATE(table<End, RestartReason>(
        {{End::Abrupt, RestartReason::Broken}, {End::HalfLine, RestartReason::Broken}}));
    h.server.planWatch({.lines = {event("ADDED", "a", "150")}, .end = end});
    h.step(milliseconds(400));
    CHECK(h.restarts.back() == reason);
    CHECK(h.state() == State::Behind);
    CHECK(h.takeTold() == Lines{"+a"});
    h.server.answerNext("watch", FakeApiServer::status(503, "ServiceUnavailable"));
    h.step(milliseconds(800));
    CHECK(h.last("watch").param("resourceVersion") == "150");
    CHECK(h.lists() == 1);
}

TEST_CASE("two minutes without a failure reset the count of failures", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    const auto breaks = [&](seconds health, milliseconds delay) {
        h.server.put(kPods, podNamed("a"));
        h.server.planWatch({.lines = {}, .end = End::Abrupt});
        const auto healthy =
            h.cache.subscribe([&](const ObjectChange&) { h.clock.advance(health); });
        h.step(delay);
    };
    breaks(seconds(0), milliseconds(400));
    breaks(seconds(0), milliseconds(800));
    breaks(seconds(119), milliseconds(1'600));
    breaks(seconds(120), milliseconds(400));
}

TEST_CASE("a watch from a version that is too old is followed by a list", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.server.put(kPods, podNamed("a"));
    h.list();
    h.server.put(kPods, podNamed("b"));
    h.follow();  // so that the list is not the last success
    h.server.remove(kPods, "x/a");
    const bool in_stream = GENERATE(true, false);
    if (in_stream) {
        h.server.compact();
    } else {
        h.server.answerNext("watch", FakeApiServer::status(410, "Gone"));
    }
    h.step();
    CHECK(h.restarts.back() == RestartReason::Expired);
    h.step();
    CHECK(h.lists() == 2);
    CHECK_FALSE(h.cache.get("x/a"));
    CHECK(h.state() == State::Following);
}

TEST_CASE("after a restart of the API server nothing is missed", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.server.put(kPods, podNamed("a"));
    h.list();
    h.server.put(kPods, podNamed("b"));
    h.follow();
    h.told.clear();
    h.server.planWatch({.lines = {}, .end = End::Abrupt});
    h.step(milliseconds(400));
    h.server.remove(kPods, "x/a");
    h.server.put(kPods, podNamed("c"));
    h.server.restart();
    h.step();  // 410 in a stream with status 200
    h.step();
    CHECK(h.takeTold() == Lines{"-a", "+c"});
}

TEST_CASE("a list that does not help is repeated only after a pause", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    const std::string gone =
        FakeApiServer::errorLine(FakeApiServer::status(410, "Expired", "too old"));
    h.server.planWatch({.lines = {gone}, .end = End::Stay});
    h.step(milliseconds(400));
    h.step();
    h.server.planWatch({.lines = {gone}, .end = End::Stay});
    h.step(milliseconds(800));
}

TEST_CASE("a watch from a version that the server has not seen is tried twice, then listed",
          "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    const bool in_stream = GENERATE(true, false);
    for (const int jitter : {40, 80}) {
        if (in_stream) {
            h.server.planWatch(
                {.lines = {FakeApiServer::errorLine(FakeApiServer::tooLarge())}, .end = End::Stay});
        } else {
            h.server.answerNext("watch", FakeApiServer::tooLarge());
        }
        CHECK(h.lists() == 1);
        h.step(seconds(1) + milliseconds(jitter));
    }
    h.step();
    CHECK(h.lists() == 2);
    CHECK(h.last("list").param("resourceVersion").empty());
}

TEST_CASE("a busy server is asked again when it says, from the same version",
          "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    const int code = GENERATE(429, 503);
    FakeApiServer::Answer busy = FakeApiServer::status(code, "");
    busy.headers = {{"Retry-After", "9"}};
    h.server.answerNext("watch", busy);
    h.step(seconds(9) + milliseconds(40));
    CHECK(h.restarts.back() == RestartReason::Throttled);
    CHECK(h.lists() == 1);
    h.server.put(kPods, podNamed("a"));
    h.follow();
    CHECK(h.takeTold() == Lines{"+a"});
    CHECK(h.lists() == 1);
}

TEST_CASE("failures of the server are borne for a minute, then the resource is listed",
          "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    const FakeApiServer::Answer failure = FakeApiServer::status(500, "InternalError");
    for (const int delay : {400, 800, 1'600}) {
        h.server.answerNext("watch", failure);
        h.step(milliseconds(delay));
        h.clock.advance(seconds(29));
    }
    CHECK(h.state() == State::Behind);
    CHECK(h.lists() == 1);
    h.server.answerNext("watch", failure);
    h.step(milliseconds(3'200));
    h.step();
    CHECK(h.lists() == 2);
    CHECK(h.state() == State::Following);
}

TEST_CASE("slow failures count like fast ones", "[unit][kubernetes]") {
    ManualClock clock;
    std::atomic<int> lists{0};
    // Answers the list, and each watch after half a minute with 500.
    test::HttpListener slow(nullptr, [&](test::ServedConnection& connection) {
        while (const auto request = connection.request()) {
            if (request->param("watch") == "true") {
                clock.advance(seconds(29));
                connection.send("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
                continue;
            }
            ++lists;
            connection.send(
                "HTTP/1.1 200 OK\r\nContent-Length: 36\r\n\r\n"
                R"({"metadata":{"resourceVersion":"7"}})");
        }
    });
    ClusterAccess access({.url = slow.url()}, clock);
    KubernetesClient client(access);
    client.noStreamedLists();
    ObjectCache cache;
    Reflector reflector(client, {.plural = "pods", .ns = "x"}, cache, clock, {.random = half});
    for (int i = 0; i < 6; ++i) (void)reflector.step();
    CHECK(lists == 2);
}

TEST_CASE("a watch that is forbidden is a condition, and is tried again", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    h.server.answerNext("watch", FakeApiServer::status(403, "Forbidden", "cannot watch"));
    h.step(milliseconds(400));
    CHECK(h.state() == State::Forbidden);
    CHECK(h.lists() == 1);
    h.server.put(kPods, podNamed("a"));
    h.follow();
    CHECK(h.state() == State::Following);
}

TEST_CASE("a resource at rest is followed, too, after a break", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    h.server.planWatch({.lines = {}, .end = End::Abrupt});
    h.step(milliseconds(400));
    CHECK(h.state() == State::Behind);
    h.server.planWatch({.lines = {}, .end = End::Clean});
    h.step(milliseconds(800));
    CHECK(h.state() == State::Following);
}

TEST_CASE("a silent watch is connected again without a failure", "[unit][kubernetes]") {
    ReflectorHarness h({.patience = milliseconds(-4'900)});  // 100 ms after five seconds less
    h.list();
    const std::string version = h.server.version();
    h.server.planWatch({.lines = {}, .end = End::Silent});
    h.step();
    CHECK(h.restarts.back() == RestartReason::Silent);
    CHECK(h.state() == State::Following);
    h.server.put(kPods, podNamed("a"));
    h.follow();
    CHECK(h.last("watch").param("resourceVersion") == version);
    CHECK(h.lists() == 1);
    CHECK(h.takeTold() == Lines{"+a"});
}

TEST_CASE("a server that does not even begin a watch is given up sooner than a silent watch",
          "[unit][kubernetes]") {
    // Answers the list, then reads and says nothing.
    test::HttpListener frozen(nullptr, [](test::ServedConnection& connection) {
        while (const auto request = connection.request()) {
            if (request->param("watch") == "true") continue;
            connection.send(
                "HTTP/1.1 200 OK\r\nContent-Length: 43\r\n\r\n"
                R"({"metadata":{"resourceVersion":"7"}})"
                "       ");
        }
    });
    const ManualClock clock;
    ClusterAccess access({.url = frozen.url()}, clock);
    KubernetesClient client(access);
    client.noStreamedLists();
    ObjectCache cache;
    Reflector reflector(client, {.plural = "pods", .ns = "x"}, cache, clock,
                        {.answer_timeout = milliseconds(50), .random = half});
    CHECK(reflector.step() == nanoseconds(0));
    CHECK(cache.hasSynced());
    CHECK(reflector.step() == milliseconds(400));
    CHECK(reflector.condition().state == State::Behind);
}

TEST_CASE("a line that is no event is never skipped: the resource is listed again",
          "[unit][kubernetes]") {
    ReflectorHarness h;
    h.server.put(kPods, podNamed("a"));
    h.list();
    const std::string bad = GENERATE(as<std::string>(), "no JSON",
                                     R"({"type":"RENAMED","object":{"metadata":{"name":"a"}}})",
                                     R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})", "");
    h.server.planWatch(
        {.lines = {event("ADDED", "b", "150"), bad, event("ADDED", "c", "151")}, .end = End::Stay});
    h.step(milliseconds(400));
    CHECK(h.takeTold() == Lines{"+b"});
    CHECK(h.restarts.back() == RestartReason::Unreadable);
    CHECK(h.state() == State::Behind);
    h.step(seconds(1) + milliseconds(80));  // the fake has never had version 150
    h.step(seconds(1) + milliseconds(160));
    h.step();
    CHECK(h.takeTold() == Lines{"-b"});
    CHECK(h.state() == State::Following);
}

TEST_CASE("a large object comes whole, a line without end does not", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    Json large = podNamed("large");
    large["data"] = std::string(3U << 20U, 'x');
    h.server.put(kPods, large);
    h.follow();
    CHECK(h.cache.get("x/large")->at("data").get_ref<const std::string&>().size() == 3U << 20U);
    h.server.planWatch({.lines = {std::string(17U << 20U, 'x')}, .end = End::Stay});
    h.step(milliseconds(400));
    CHECK(h.restarts.back() == RestartReason::Unreadable);
    h.step();
    CHECK(h.lists() == 2);
}

TEST_CASE("a watch lasts a random time between its bounds", "[unit][kubernetes]") {
    ReflectorHarness h;
    ObjectCache other;
    double number = 0;
    Reflector reflector(*h.client, {.plural = "pods", .ns = "x"}, other, h.clock,
                        {.random = [&] { return number; }});
    h.client->noStreamedLists();
    CHECK(reflector.step() == nanoseconds(0));
    for (const auto& [random, length] :
         std::vector<std::pair<double, std::string>>{{0, "300"}, {0.5, "450"}, {0.999, "599"}}) {
        number = random;
        h.server.planWatch({.lines = {event("ADDED", "a", "1")}, .end = End::Clean});
        CHECK(reflector.step() == nanoseconds(0));
        CHECK(h.last("watch").param("timeoutSeconds") == length);
    }
}

TEST_CASE("a stop ends a watch that waits, and its thread", "[unit][kubernetes]") {
    ReflectorHarness h;
    std::jthread thread([&](const std::stop_token& stop) { h.reflector->run(stop); });
    h.server.awaitWatches(1);
    h.server.put(kPods, podNamed("a"));
    CHECK(test::eventually([&] { return h.cache.get("x/a") != nullptr; }));
    thread.request_stop();
    thread.join();
    CHECK(h.state() == State::Following);
    h.step();  // a step after the stop does nothing
    CHECK(h.server.seen("watch").size() == 2);
}

TEST_CASE("a stop ends the pause between two tries", "[unit][kubernetes]") {
    ReflectorHarness h({.random = [] { return 0.999; }});
    for (int i = 0; i < 20; ++i) {
        h.server.answerNext("watch", FakeApiServer::status(403, "Forbidden"));
    }
    FakeApiServer::Answer busy = FakeApiServer::status(429, "");
    busy.headers = {{"Retry-After", "3000"}};
    h.client->noStreamedLists();
    h.server.answerNext("list", busy);
    std::jthread thread([&](const std::stop_token& stop) { h.reflector->run(stop); });
    CHECK(test::eventually([&] { return h.state() == State::Behind; }));
    thread.request_stop();
    thread.join();
    CHECK(h.lists() == 1);
}

TEST_CASE("a reflector that is stopped by itself ends run()", "[unit][kubernetes]") {
    ReflectorHarness h;
    std::jthread thread([&] { h.reflector->run({}); });
    h.server.awaitWatches(1);
    h.reflector->stop();
    thread.join();
    CHECK(h.cache.hasSynced());
}

TEST_CASE("a watch over TLS breaks, is silent and is stopped like a plain one",
          "[unit][kubernetes]") {
    egress::TlsAuthority authority({"127.0.0.1"});
    const ManualClock clock;
    FakeApiServer server(authority.serverFor("127.0.0.1"));
    server.addKind(kPods);
    ClusterAccess access({.url = server.url(), .authority = {.text = authority.certificatePem()}},
                         clock);
    KubernetesClient client(access);
    ObjectCache cache;
    std::vector<RestartReason> restarts;
    Reflector reflector(client, {.plural = "pods", .ns = "x"}, cache, clock,
                        {.shortest_watch = seconds(0),
                         .longest_watch = seconds(0),
                         .patience = milliseconds(100),
                         .random = half,
                         .on_restart = [&](RestartReason reason) { restarts.push_back(reason); }});
    CHECK(reflector.step() == nanoseconds(0));
    CHECK(reflector.step() == nanoseconds(0));
    server.put(kPods, podNamed("a"));
    server.planWatch({.lines = {}, .end = End::Abrupt});
    CHECK(reflector.step() == milliseconds(400));
    CHECK(cache.get("x/a") != nullptr);
    server.planWatch({.lines = {}, .end = End::Silent});
    CHECK(reflector.step() == nanoseconds(0));
    CHECK(restarts == std::vector<RestartReason>{RestartReason::Broken, RestartReason::Silent});

    ObjectCache other;
    Reflector patient(client, {.plural = "pods", .ns = "x"}, other, clock, {.random = half});
    std::jthread thread([&](const std::stop_token& stop) { patient.run(stop); });
    server.awaitWatches(3);
    thread.request_stop();
    thread.join();
    CHECK(other.size() == 1);
}

TEST_CASE("a token that has changed is read again after a 401", "[unit][kubernetes]") {
    test::TempDir dir;
    test::writeText(dir.file("token"), "old\n");
    ManualClock clock;
    FakeApiServer server;
    server.addKind(kPods);
    server.acceptOnly("old");
    ClusterAccess access({.url = server.url(), .token = {.file = dir.file("token")}}, clock);
    KubernetesClient client(access);
    client.noStreamedLists();
    ObjectCache cache;
    Reflector reflector(client, {.plural = "pods", .ns = "x"}, cache, clock, {.random = half});
    CHECK(reflector.step() == nanoseconds(0));
    server.acceptOnly("new");
    CHECK(reflector.step() == milliseconds(400));
    CHECK(reflector.condition().state == State::Unauthorized);
    test::writeText(dir.file("token"), "new\n");
    server.put(kPods, podNamed("a"));
    server.planWatch({.lines = {}, .end = End::Clean});
    CHECK(reflector.step() == nanoseconds(0));
    CHECK(cache.get("x/a") != nullptr);
    CHECK(reflector.condition().state == State::Following);
}

TEST_CASE("a server that is away is found again", "[unit][kubernetes]") {
    ManualClock clock;
    std::string url;
    {
        const FakeApiServer gone;
        url = gone.url();
    }
    ClusterAccess access({.url = url}, clock);
    KubernetesClient client(access);
    ObjectCache cache;
    Reflector reflector(client, {.plural = "pods", .ns = "x"}, cache, clock, {.random = half});
    CHECK(reflector.step() == milliseconds(400));
    CHECK(reflector.step() == milliseconds(800));
    CHECK(reflector.condition().state == State::Behind);
    CHECK(reflector.condition().message.find("Connection refused") != std::string::npos);
}
