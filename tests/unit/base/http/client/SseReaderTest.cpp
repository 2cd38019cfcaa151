#include <catch2/catch.hpp>
#include <vector>

#include "base/Error.h"
#include "base/http/client/SseReader.h"

using namespace hearth;
using namespace hearth::http;

namespace {

std::vector<SseEvent> readEvents(const std::vector<std::string>& pieces) {
    std::vector<SseEvent> events;
    SseReader reader([&](const SseEvent& event) {
        events.push_back(event);
        return true;
    });
    for (const std::string& piece : pieces) reader.feed(piece);
    return events;
}

}  // namespace

TEST_CASE("events are whole whatever pieces they come in", "[unit][http]") {
    const std::string text =
        ": hello\n\nid: 7\nevent: stdout\ndata: {\"text\":\r\ndata: \"a\"}\r\n\r\ndata:x\n\n";
    std::vector<std::string> bytes;
    for (const char c : text) bytes.emplace_back(1, c);
    for (const auto& events : {readEvents({text}), readEvents(bytes)}) {
        REQUIRE(events.size() == 2);
        CHECK(events[0].type == "stdout");
        CHECK(events[0].id == "7");
        CHECK(events[0].data == "{\"text\":\n\"a\"}");
        CHECK(events[1].type == "message");
        CHECK(events[1].id == "7");
        CHECK(events[1].data == "x");
    }
}

TEST_CASE("no event comes after the reader was told to stop", "[unit][http]") {
    int seen = 0;
    SseReader reader([&](const SseEvent&) { return ++seen < 1; });
    CHECK_FALSE(reader.feed("data: 1\n\ndata: 2\n\n"));
    CHECK(seen == 1);
}

TEST_CASE("an event that does not end is refused, and soon", "[unit][http]") {
    SseReader reader([](const SseEvent&) { return true; });
    const std::string piece(4096, 'x');
    const auto feedAll = [&] {
        for (std::size_t i = 0; i < 17'000; ++i) reader.feed(piece);
    };
    CHECK_THROWS_AS(feedAll(), Error);
}
