#include <catch2/catch.hpp>

#include "pool/runtime/kubernetes/client/WatchEvent.h"

using namespace hearth::pool::kubernetes;

TEST_CASE("an event brings its kind, object and version", "[unit][kubernetes]") {
    const auto event = parseWatchEvent(
        R"({"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"7"}}})");
    REQUIRE(event);
    CHECK(event->kind == WatchEvent::Kind::Modified);
    CHECK(event->version == "7");
    CHECK(event->object["metadata"]["name"] == "a");
}

TEST_CASE("a bookmark needs no name, and may end the initial events", "[unit][kubernetes]") {
    const auto plain =
        parseWatchEvent(R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}})");
    REQUIRE(plain);
    CHECK_FALSE(plain->ends_initial);
    const auto last = parseWatchEvent(
        R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":)"
        R"({"k8s.io/initial-events-end":"true"}}}})");
    REQUIRE(last);
    CHECK(last->ends_initial);
}

TEST_CASE("an object with parts that nobody can read is an event all the same",
          "[unit][kubernetes]") {
    const std::string deep = std::string(1000, '[') + std::string(1000, ']');
    const auto event = parseWatchEvent(
        R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"},"spec":{"cpu":)" +
        deep + R"(,"env":{"A\u0000":"b","C":"d"}}}})");
    REQUIRE(event);
    CHECK(event->object["spec"]["env"] == hearth::Json{{"C", "d"}});
}

TEST_CASE("a line that is no known event is refused", "[unit][kubernetes]") {
    for (const char* line :
         {"", "{", "[]", "7", R"({"type":"ADDED"})", R"({"type":"ADDED","object":[]})",
          R"({"type":"RENAMED","object":{"metadata":{"name":"a","resourceVersion":"7"}}})",
          R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})",
          R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"7"}}})",
          R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":7}}})",
          R"({"object":{"metadata":{"name":"a","resourceVersion":"7"}}})",
          R"({"type":"BOOKMARK","object":{"metadata":{}}})",
          R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"}}} x)"}) {
        INFO(line);
        CHECK_FALSE(parseWatchEvent(line));
    }
}
