#include <catch2/catch.hpp>

#include "pool/agent/protocol/Deadlines.h"
#include "pool/agent/protocol/WorkspacePath.h"

using hearth::agent::Deadlines;
using hearth::agent::pathBefore;
using hearth::agent::workspacePath;

namespace {
constexpr std::int64_t kSecond = 1'000'000'000;
}

TEST_CASE("without deadlines a sandbox never ends", "[unit][agent]") {
    Deadlines d;
    d.touch(5 * kSecond);
    CHECK(d.idleAtNs() == 0);
    CHECK(d.endsAtNs() == 0);
}

TEST_CASE("idleness counts from the last activity and not while something runs", "[unit][agent]") {
    Deadlines d;
    d.setIdleTimeout(10'000);
    d.touch(kSecond);
    CHECK(d.idleAtNs() == 11 * kSecond);
    CHECK(d.endsAtNs() == 13 * kSecond);
    d.started(5 * kSecond);
    CHECK(d.idleAtNs() == 0);
    CHECK(d.endsAtNs() == 0);
    d.started(6 * kSecond);
    d.ended(7 * kSecond);
    CHECK(d.idleAtNs() == 0);
    d.ended(100 * kSecond);
    CHECK(d.idleAtNs() == 110 * kSecond);
    d.touch(50 * kSecond);  // a late report does not turn the clock back
    CHECK(d.idleAtNs() == 110 * kSecond);
}

TEST_CASE("the lifetime holds even while something runs, and the earlier deadline wins",
          "[unit][agent]") {
    Deadlines d;
    d.setIdleTimeout(10'000);
    d.setExpiresAt(20 * kSecond);
    d.touch(kSecond);
    CHECK(d.endsAtNs() == 13 * kSecond);
    d.started(2 * kSecond);
    CHECK(d.endsAtNs() == 22 * kSecond);
    d.setExpiresAt(0);
    CHECK(d.endsAtNs() == 0);
}

TEST_CASE("idleness that the server acts on ends no sandbox, the lifetime does", "[unit][agent]") {
    Deadlines d;
    d.setIdleTimeout(10'000);
    d.setIdleEnds(false);
    d.touch(kSecond);
    CHECK(d.idleAtNs() == 11 * kSecond);
    CHECK(d.endsAtNs() == 0);
    d.setExpiresAt(20 * kSecond);
    CHECK(d.endsAtNs() == 22 * kSecond);
}

TEST_CASE("an agent that was frozen over its end leaves it to the server that thawed it",
          "[unit][agent]") {
    Deadlines d;
    d.setIdleEnds(false);
    d.setExpiresAt(100 * kSecond);
    const std::int64_t end = 100 * kSecond + Deadlines::kGraceNs;
    d.awake(end);  // in time, so it was not frozen
    CHECK(d.endsAtNs() == end);
    d.awake(500 * kSecond);
    CHECK(d.endsAtNs() == 500 * kSecond + Deadlines::kThawedNs);
    d.awake(505 * kSecond);  // only once for each end
    CHECK(d.endsAtNs() == 500 * kSecond + Deadlines::kThawedNs);
    d.setExpiresAt(1'000 * kSecond);
    CHECK(d.endsAtNs() == 1'000 * kSecond + Deadlines::kGraceNs);
    d.awake(2'000 * kSecond);
    CHECK(d.endsAtNs() == 2'000 * kSecond + Deadlines::kThawedNs);

    Deadlines never_frozen;
    never_frozen.setExpiresAt(100 * kSecond);
    never_frozen.awake(500 * kSecond);
    CHECK(never_frozen.endsAtNs() == end);
}

TEST_CASE("absurd deadlines do not overflow", "[unit][agent]") {
    Deadlines d;
    d.setExpiresAt(INT64_MAX);
    d.setIdleTimeout(INT64_MAX);
    d.touch(kSecond);
    CHECK(d.endsAtNs() > 0);
    d.setIdleTimeout(-5);
    CHECK(d.idleAtNs() == 0);
    CHECK(d.endsAtNs() == 0);
}

TEST_CASE("workspace paths are made relative, and none leads outside", "[unit][agent]") {
    CHECK(workspacePath("") == "");
    CHECK(workspacePath(".") == "");
    CHECK(workspacePath("/workspace") == "");
    CHECK(workspacePath("/workspace/") == "");
    CHECK(workspacePath("/workspace/a/b") == "a/b");
    CHECK(workspacePath("./a/./b") == "a/b");
    CHECK(workspacePath("a/../b") == "b");
    CHECK(workspacePath("a/") == "a");
    CHECK_FALSE(workspacePath("..").has_value());
    CHECK_FALSE(workspacePath("a/../../b").has_value());
    CHECK_FALSE(workspacePath("/etc/passwd").has_value());
    CHECK_FALSE(workspacePath("/workspaces/a").has_value());
    CHECK_FALSE(workspacePath("/workspace/../etc").has_value());
    CHECK_FALSE(workspacePath("a//b").has_value());
    CHECK_FALSE(workspacePath(std::string("a\0b", 3)).has_value());
    CHECK_FALSE(workspacePath(std::string(5'000, 'a')).has_value());
    CHECK_FALSE(workspacePath(std::string(256, 'a')).has_value());
}

TEST_CASE("paths are ordered as a sorted walk meets them", "[unit][agent]") {
    CHECK(pathBefore("a", "b"));
    CHECK(pathBefore("a", "a/b"));
    CHECK(pathBefore("a/b", "a-b"));
    CHECK_FALSE(pathBefore("a-b", "a/z"));
    CHECK_FALSE(pathBefore("a", "a"));
    CHECK(pathBefore("a/z", "b/a"));
}
