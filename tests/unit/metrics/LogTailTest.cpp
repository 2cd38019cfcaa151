#include <algorithm>
#include <catch2/catch.hpp>
#include <semaphore>
#include <string>

#include "metrics/Log.h"
#include "metrics/LogTail.h"

using namespace hearth::metrics;

TEST_CASE("the tail of a log has its last lines, each once, by their ids", "[unit][metrics]") {
    LogTail tail;
    CHECK(tail.after(0, 10).empty());
    tail.add("one\n");
    tail.add("two\n");
    const auto lines = tail.after(0, 10);
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].id == 1);
    CHECK(lines[1].text == "two");
    CHECK(tail.after(1, 10).size() == 1);
    CHECK(tail.after(2, 10).empty());
    CHECK(tail.after(99, 10).empty());
    CHECK(tail.after(0, 1).front().text == "one");
    CHECK(tail.before(1) == 1);
    CHECK(tail.before(50) == 0);
}

TEST_CASE("a tail is bounded by bytes, and keeps at least the last line", "[unit][metrics]") {
    LogTail tail(10);
    for (int i = 0; i < 20; ++i) tail.add("12345");
    CHECK(tail.after(0, 100).size() == 2);
    CHECK(tail.after(0, 100).front().id == 19);
    tail.add(std::string(100, 'x'));
    REQUIRE(tail.after(0, 100).size() == 1);
    CHECK(tail.after(0, 100).front().id == 21);
}

TEST_CASE("a flood of lines pushes out no lines of other tenants and events", "[unit][metrics]") {
    LogTail tail(4096);
    Log log(-1, LogLevel::Info, LogFormat::Logfmt, &tail);
    log.info("workspace.bound", {{"workspace", "w1"}, {"tenant", "quiet"}});
    log.warn("sandbox.lost", {{"sandbox", "s1"}});
    for (int i = 0; i < 500; ++i) log.info("claim.refused", {{"tenant", "loud"}, {"try", i}});
    for (int i = 0; i < 500; ++i) log.warn("http.failed", {{"tenant", ""}, {"try", i}});
    for (int i = 0; i < 500; ++i) log.info("claim.refused", {{"tenant", "http.failed"}});
    const auto lines = tail.after(0, 1000);
    REQUIRE(lines.size() > 10);
    CHECK(lines[0].text.ends_with("workspace.bound workspace=w1 tenant=quiet"));
    CHECK(lines[1].text.ends_with("sandbox.lost sandbox=s1"));
    CHECK(lines.back().id == 1502);
    CHECK(tail.before(lines.size() - 2) >= 2);
    const auto of = [&](const std::string& text) {
        return std::count_if(lines.begin(), lines.end(), [&](const LogTail::Line& line) {
            return line.text.find(text) != std::string::npos;
        });
    };
    CHECK(of("tenant=loud") >= 10);  // each of the three has about a third of what is left
    CHECK(of("event=http.failed") >= 10);
    CHECK(of("tenant=http.failed") >= 10);
}

TEST_CASE("a watcher of a tail gets new lines, and may itself read the tail", "[unit][metrics]") {
    LogTail tail;
    std::counting_semaphore<> heard(0);
    std::size_t seen = 0;
    auto watch = tail.subscribe([&] {
        seen = tail.after(0, 100).size();
        heard.release();
    });
    tail.add("one");
    REQUIRE(heard.try_acquire_for(std::chrono::seconds(10)));
    CHECK(seen >= 1);
    watch.reset();
    tail.add("two");  // no subscriber is left
    CHECK(tail.after(0, 100).size() == 2);
}

TEST_CASE("a log's level can be changed while it writes", "[unit][metrics]") {
    Log log(-1, LogLevel::Warn);
    CHECK_FALSE(log.shows(LogLevel::Info));
    log.setLevel(LogLevel::Debug);
    CHECK(log.shows(LogLevel::Debug));
    CHECK(log.level() == LogLevel::Debug);
}
