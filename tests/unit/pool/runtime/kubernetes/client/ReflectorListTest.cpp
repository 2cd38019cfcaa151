#include "tests/unit/pool/runtime/kubernetes/client/ReflectorHarness.h"

using namespace hearth;
using namespace hearth::kubernetes_test;

TEST_CASE("a reflector lists first, and watches from the version of the list",
          "[unit][kubernetes]") {
    ReflectorHarness h;
    h.server.put(kPods, podNamed("a"));
    h.server.put("/api/v1/nodes", {{"metadata", {{"name", "later"}}}});  // a greater version
    CHECK(h.state() == State::Starting);
    CHECK_FALSE(h.reflector->ready());
    h.list();
    CHECK(h.last("list").param("resourceVersion").empty());  // a consistent list, not a cached one
    CHECK(h.last("list").path == "/api/v1/namespaces/x/pods");
    CHECK(h.cache.get("x/a") != nullptr);
    CHECK(h.state() == State::Following);
    CHECK(h.reflector->ready());
    const std::string version = h.server.version();
    h.server.put(kPods, podNamed("b"));
    h.follow();
    CHECK(h.last("watch").param("resourceVersion") == version);
    CHECK(h.last("watch").param("allowWatchBookmarks") == "true");
    CHECK(h.last("watch").param("timeoutSeconds") == "5");
}

TEST_CASE("a long list is read in pages, and published at once when it is complete",
          "[unit][kubernetes]") {
    ReflectorHarness h({.page = 2});
    for (const char* name : {"a", "b", "c", "d", "e"}) h.server.put(kPods, podNamed(name));
    h.step();
    h.step();
    CHECK(h.lists() == 3);
    CHECK(h.last("list").param("limit") == "2");
    // The token holds a ';', which a Go server would take for the end of the parameter.
    CHECK(h.last("list").target.find("%3B") != std::string::npos);
    CHECK(h.takeTold() == Lines{"+a", "+b", "+c", "+d", "+e"});
}

TEST_CASE("pages that expire while they are read are replaced by one whole list",
          "[unit][kubernetes]") {
    ReflectorHarness h({.page = 1});
    h.server.put(kPods, podNamed("a"));
    h.server.put(kPods, podNamed("b"));
    h.step();
    // The first page is real; before the second the server forgets the version of the first.
    h.server.answerNext("list",
                        {.status = 200,
                         .body = R"({"metadata":{"resourceVersion":"1","continue":"1;x/a"},)"
                                 R"("items":[{"metadata":{"namespace":"x","name":"gone"}}]})"});
    h.server.compact();
    h.step();
    CHECK(h.told.empty());  // an incomplete list is not reported
    h.step();
    CHECK(h.last("list").param("continue").empty());
    CHECK(h.last("list").param("limit").empty());
    CHECK(h.last("list").param("resourceVersion").empty());
    CHECK(h.takeTold() == Lines{"+a", "+b"});
}

TEST_CASE("a relist finds objects that were deleted, changed or made anew in between",
          "[unit][kubernetes]") {
    ReflectorHarness h;
    for (const char* name : {"gone", "same", "new-uid", "changed"}) {
        h.server.put(kPods, podNamed(name));
    }
    h.list();
    const std::string before = h.server.version();
    h.server.remove(kPods, "x/gone");
    h.server.remove(kPods, "x/new-uid");
    h.server.put(kPods, podNamed("new-uid"));
    h.server.put(kPods, podNamed("changed", "now"));
    h.server.compact();
    h.step(milliseconds(400));  // 410: no watch has worked since the list
    h.step();
    CHECK(h.last("list").param("resourceVersion") == before);
    CHECK(h.last("list").param("limit").empty());
    CHECK(h.takeTold() == Lines{"-gone", "~changed", "-new-uid", "+new-uid"});
    CHECK(h.cache.size() == 3);
}

TEST_CASE("a list at the last version that is too old is made without one", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    h.server.planWatch({.lines = {"no JSON"}, .end = End::Stay});
    h.step(milliseconds(400));
    h.server.answerNext("list", FakeApiServer::status(410, "Expired"));
    h.step();
    h.step();
    CHECK(h.last("list").param("resourceVersion").empty());
    CHECK(h.last("list").param("limit") == "500");
    CHECK(h.state() == State::Following);
}

TEST_CASE("a list at a version that the server has not seen is tried twice, then without it",
          "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    h.server.planWatch({.lines = {"no JSON"}, .end = End::Stay});
    h.step(milliseconds(400));
    h.server.answerNext("list", FakeApiServer::tooLarge());
    h.server.answerNext("list", FakeApiServer::tooLarge());
    h.step(seconds(1) + milliseconds(80));  // the server's time plus a tenth of the jitter
    CHECK_FALSE(h.last("list").param("resourceVersion").empty());
    h.step(seconds(1) + milliseconds(160));
    CHECK_FALSE(h.last("list").param("resourceVersion").empty());
    h.step();
    CHECK(h.last("list").param("resourceVersion").empty());
}

TEST_CASE("a failed list is repeated after growing pauses with jitter", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.step();
    for (int i = 0; i < 8; ++i)
        h.server.answerNext("list", FakeApiServer::status(500, "InternalError"));
    for (const int delay : {400, 800, 1'600, 3'200, 6'400, 12'800, 15'000, 15'000}) {
        h.step(milliseconds(delay));
        CHECK(h.state() == State::Behind);
    }
    h.step();
    CHECK(h.state() == State::Following);
}

TEST_CASE("a server that throttles says how long to wait", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.step();
    FakeApiServer::Answer busy = FakeApiServer::status(429, "TooManyRequests");
    busy.headers = {{"Retry-After", "7"}};
    h.server.answerNext("list", busy);
    h.step(seconds(7) + milliseconds(40));
    CHECK(h.restarts.back() == RestartReason::Throttled);
    h.step();
    CHECK(h.state() == State::Following);
}

TEST_CASE("a kind that does not exist yet is waited for", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.server.removeKind(kPods);
    h.step(milliseconds(400));  // even the streamed list says 404
    h.step(milliseconds(800));
    CHECK(h.state() == State::Missing);
    CHECK_FALSE(h.reflector->ready());
    h.server.addKind(kPods);
    h.step();
    h.step();
    CHECK(h.reflector->ready());
}

TEST_CASE("a kind that goes away is not ready, and keeps what was seen", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.server.put(kPods, podNamed("a"));
    h.list();
    h.server.removeKind(kPods);
    h.step(milliseconds(400));
    CHECK(h.state() == State::Missing);
    CHECK_FALSE(h.reflector->ready());
    CHECK(h.cache.size() == 1);
    h.step(milliseconds(800));
    h.server.addKind(kPods);
    h.step();
    CHECK(h.reflector->ready());
    CHECK(h.takeTold() == Lines{"-a"});
}

TEST_CASE("a permission that is missing is a condition that names it", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.step();
    h.server.answerNext(
        "list", FakeApiServer::status(403, "Forbidden", "hearth cannot list resource \"pods\""));
    h.step(milliseconds(400));
    CHECK(h.state() == State::Forbidden);
    CHECK(h.reflector->condition().message ==
          "pods in x: forbidden (403): hearth cannot list resource \"pods\"");
    h.step();
    CHECK(h.state() == State::Following);
    CHECK(h.states == std::vector<State>{State::Forbidden, State::Following});
}

TEST_CASE("an answer that is no list does not count as an empty one", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.server.put(kPods, podNamed("a"));
    h.list();
    h.server.compact();
    h.step(milliseconds(400));
    for (const char* body : {"{}", "[]", "<html>", R"({"metadata":{},"items":[]})",
                             R"({"metadata":{"resourceVersion":"1"},"items":{}})",
                             R"({"metadata":{"resourceVersion":"1"},"items":[{}]})"}) {
        h.server.answerNext("list", {.status = 200, .body = body});
        CHECK(h.reflector->step() > nanoseconds(0));
        CHECK(h.state() == State::Behind);
        CHECK(h.cache.size() == 1);
    }
    h.step();
    CHECK(h.state() == State::Following);
}

TEST_CASE("a server that streams lists is asked for one", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.server.streamLists();
    h.server.put(kPods, podNamed("a"));
    h.server.put(kPods, podNamed("b"));
    h.follow();
    CHECK(h.lists() == 0);
    CHECK(h.last("watch").param("sendInitialEvents") == "true");
    CHECK(h.last("watch").param("resourceVersionMatch") == "NotOlderThan");
    CHECK(h.takeTold() == Lines{"+a", "+b"});
    CHECK(h.reflector->ready());
    h.server.remove(kPods, "x/a");
    h.server.compact();
    h.follow();  // 410
    CHECK(h.takeTold().empty());
    h.follow();
    CHECK(h.lists() == 0);
    CHECK_FALSE(h.last("watch").param("resourceVersion").empty());  // not older than the known one
    CHECK(h.takeTold() == Lines{"-a"});
}

TEST_CASE("a server that streams no lists is asked once, by one reflector", "[unit][kubernetes]") {
    ReflectorHarness h;
    h.list();
    CHECK(h.server.seen("watch").size() == 1);
    ObjectCache other;
    Reflector second(*h.client, {.plural = "pods", .ns = "x"}, other, h.clock, {.random = half});
    CHECK(second.step() == nanoseconds(0));
    CHECK(other.hasSynced());
    CHECK(h.server.seen("watch").size() == 1);
}

TEST_CASE("changes during a streamed list are a part of it", "[unit][kubernetes]") {
    ReflectorHarness h;
    const auto line = [](const std::string& type, const std::string& name,
                         const std::string& version) {
        return R"({"type":")" + type + R"(","object":{"metadata":{"namespace":"x","name":")" +
               name + R"(","uid":"u","resourceVersion":")" + version + "\"}}}\n";
    };
    h.server.answerNext(
        "watch", {.status = 200,
                  .body = line("ADDED", "a", "5") + line("ADDED", "b", "6") +
                          line("MODIFIED", "a", "7") + line("DELETED", "b", "8") +
                          R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8",)"
                          R"("annotations":{"k8s.io/initial-events-end":"true"}}}})" +
                          "\n"});
    h.step();
    CHECK(h.takeTold() == Lines{"+a"});
    CHECK(metadataText(*h.cache.get("x/a"), "resourceVersion") == "7");
}

TEST_CASE("a first list that cannot be read is followed by a consistent one",
          "[unit][kubernetes]") {
    ReflectorHarness h;
    h.server.answerNext("watch", {.status = 200, .body = "no event\n"});
    h.step(milliseconds(400));
    h.step();  // 422
    h.step();
    CHECK(h.last("list").param("limit") == "500");
    CHECK(h.cache.hasSynced());
}

TEST_CASE("a streamed list that breaks off is thrown away, and replaced by pages in the end",
          "[unit][kubernetes]") {
    ReflectorHarness h;
    const std::string some =
        R"({"type":"ADDED","object":{"metadata":{"namespace":"x","name":"half","uid":"u",)"
        R"("resourceVersion":"7"}}})";
    h.server.streamLists();
    h.server.removeKind(kPods);
    h.server.addKind(kPods);
    for (int i = 0; i < 2; ++i) {
        // An answer in place of the real stream: objects, and no bookmark at the end.
        h.server.answerNext("watch", {.status = 200, .body = some + "\n"});
        h.step();
        CHECK_FALSE(h.cache.hasSynced());
    }
    CHECK(h.told.empty());
    h.step();
    CHECK(h.lists() == 1);
    CHECK(h.cache.hasSynced());
    CHECK(h.cache.size() == 0);
}
