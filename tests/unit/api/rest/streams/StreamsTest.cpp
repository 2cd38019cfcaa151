#include <catch2/catch.hpp>
#include <thread>

#include "api/rest/streams/EventStream.h"
#include "api/rest/streams/ExecutionStream.h"
#include "api/rest/streams/Sse.h"
#include "tests/support/Support.h"
#include "tests/unit/api/rest/House.h"

using namespace hearth;
using namespace hearth::test;

namespace {

struct Sent {
    std::uint64_t id;
    std::string name;
    Json data;
};

/// Returns the events that a client reads from these bytes.
std::vector<Sent> parse(std::string_view text) {
    std::vector<Sent> all;
    while (!text.empty()) {
        const std::size_t end = text.find("\n\n");
        REQUIRE(end != std::string_view::npos);
        std::string_view event = text.substr(0, end);
        text.remove_prefix(end + 2);
        Sent sent{};
        while (!event.empty()) {
            const std::size_t stop = std::min(event.find('\n'), event.size());
            const std::string line(event.substr(0, stop));
            event.remove_prefix(std::min(stop + 1, event.size()));
            if (line.starts_with("id: ")) sent.id = std::stoull(line.substr(4));
            if (line.starts_with("event: ")) sent.name = line.substr(7);
            if (line.starts_with("data: ")) sent.data = parseJson(line.substr(6));
        }
        all.push_back(std::move(sent));
    }
    return all;
}

std::vector<Sent> follow(const std::shared_ptr<FakeExecution>& execution,
                         std::optional<std::uint64_t> after) {
    const auto stream = std::make_shared<FakeStream>();
    rest::StreamedJson carrier;
    rest::ExecutionStream::start(execution, stream, {after, "t"}, carrier);
    return parse(stream->sent);
}

std::string bytesOf(const std::vector<Sent>& all, const std::string& name) {
    std::string out;
    for (const Sent& sent : all) {
        if (sent.name != name) continue;
        std::string bytes;
        if (sent.data.contains("base64")) {
            base64Decode(sent.data.at("base64").get<std::string>(), bytes);
        } else {
            bytes = sent.data.at("text").get<std::string>();
        }
        out += bytes;
    }
    return out;
}

}  // namespace

TEST_CASE("a stream tells start, output in order, error and exit", "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    const auto stream = std::make_shared<FakeStream>();
    rest::StreamedJson carrier;
    rest::ExecutionStream::start(execution, stream, {std::nullopt, "t"}, carrier);
    execution->print(1, "one\n");
    execution->print(2, "two");
    execution->state.error = Json{{"name", "ValueError"}, {"message", "m"}};
    execution->end("failed", 1);

    const std::vector<Sent> all = parse(stream->sent);
    REQUIRE(all.size() == 5);
    CHECK(all[0].name == "started");
    CHECK(all[0].data.at("traceId") == "t");
    CHECK(all[1].name == "stdout");
    CHECK(all[1].id == 4);
    CHECK(all[1].data.at("text") == "one\n");
    CHECK(all[2].name == "stderr");
    CHECK(all[2].id == 7);
    CHECK(all[3].name == "error");
    CHECK(all[4].name == "exit");
    CHECK(all[4].data.at("exitCode") == 1);
    for (std::size_t i = 1; i < all.size(); ++i) CHECK(all[i].id > all[i - 1].id);
    CHECK(stream->finished);
    CHECK(execution->subscriptions() == 0);
    CHECK(execution.use_count() == 1);
    CHECK(stream.use_count() == 1);
}

TEST_CASE("a stream whose sandbox does not answer ends with a problem", "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    const auto stream = std::make_shared<FakeStream>();
    rest::StreamedJson carrier;
    rest::ExecutionStream::start(execution, stream, {std::nullopt, "t"}, carrier);
    execution->print(1, "one\n");
    CHECK_FALSE(stream->finished);
    execution->fallSilent();

    const std::vector<Sent> all = parse(stream->sent);
    REQUIRE(all.size() == 3);
    CHECK(all[1].data.at("text") == "one\n");
    CHECK(all[2].name == "problem");
    CHECK(all[2].id == 4);  // a client resumes there
    CHECK(all[2].data.at("errorCode") == "DEADLINE");
    CHECK_THAT(all[2].data.at("detail").get<std::string>(), Catch::Contains("does not answer"));
    CHECK(stream->finished);
    CHECK(execution->subscriptions() == 0);
}

TEST_CASE("resuming after any event gives exactly the rest", "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    execution->print(1, "caf\xC3");
    execution->print(1, "\xA9 and \xF0\x9F");
    execution->print(2, "oops");
    execution->print(1, "\x94\xA5 done\xFF");
    execution->end("ok", 0);
    const std::vector<Sent> whole = follow(execution, std::nullopt);
    CHECK(bytesOf(whole, "stdout") == execution->state.stdout_bytes);
    CHECK(bytesOf(whole, "stderr") == "oops");
    for (std::size_t i = 0; i < whole.size(); ++i) {
        const std::vector<Sent> rest = follow(execution, whole[i].id);
        INFO("behind id " << whole[i].id);
        std::string expected;
        std::string got;
        for (std::size_t j = i + 1; j < whole.size(); ++j) {
            if (whole[j].name != "exit") expected += whole[j].name + whole[j].data.dump();
        }
        for (const Sent& sent : rest) {
            if (sent.name != "exit") got += sent.name + sent.data.dump();
        }
        CHECK(got == expected);
        REQUIRE(!rest.empty());
        CHECK(rest.back().name == "exit");
        CHECK(rest.back().id > whole[i].id);
    }
}

TEST_CASE("resuming after an id beyond the end gives the end, and no smaller ids", "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    execution->print(1, "one\n");
    execution->show("text/plain", "shown");
    execution->state.error = Json{{"name", "E"}, {"message", "m"}};
    execution->end("failed", 1);
    for (const std::uint64_t after : {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 2, 1'000'000UL}) {
        INFO(after);
        const std::vector<Sent> all = follow(execution, after);
        REQUIRE(all.size() == 2);
        CHECK(all[0].name == "error");
        CHECK(all[1].name == "exit");
        CHECK(all[1].id == (after == 1'000'000 ? 1'000'002 : UINT64_MAX));
    }
}

TEST_CASE("results stand in order with the output and resuming finds every place", "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    execution->show("text/plain", "first");
    execution->print(1, "caf\xC3");
    execution->show("text/html", "<b>");
    execution->print(1, "\xA9 one");
    execution->print(2, std::string(40'000, 'e'));
    execution->show("text/plain", "a");
    execution->show("text/plain", "b");
    execution->print(1, "tail");
    execution->show("text/plain", "42", true);
    execution->state.error = Json{{"name", "E"}, {"message", "m"}};
    execution->end("failed", 1);
    const std::vector<Sent> whole = follow(execution, std::nullopt);
    std::string order;
    for (const Sent& sent : whole) order += sent.name.substr(0, 3) + " ";
    CHECK(order == "sta res std std res std std std std res res std res err exi ");
    CHECK(whole[1].data.at("mime").at("text/plain") == "first");
    CHECK(whole[12].data.at("main") == true);
    CHECK(whole.back().data.at("results").size() == 5);
    for (std::size_t i = 0; i < whole.size(); ++i) {
        if (i > 0) CHECK(whole[i].id > whole[i - 1].id);
        const std::vector<Sent> rest = follow(execution, whole[i].id);
        INFO("behind id " << whole[i].id);
        std::string expected;
        std::string got;
        for (std::size_t j = i + 1; j < whole.size(); ++j) {
            if (whole[j].name == "result") expected += whole[j].data.dump();
        }
        for (const Sent& sent : rest) {
            if (sent.name == "result") got += sent.data.dump();
        }
        CHECK(got == expected);
        const std::vector<Sent> left(whole.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                     whole.end());
        CHECK(bytesOf(rest, "stdout") == bytesOf(left, "stdout"));
        CHECK(bytesOf(rest, "stderr") == bytesOf(left, "stderr"));
        CHECK(rest.back().name == "exit");
    }
}

TEST_CASE("a position among results is found when they return after a restart", "[unit][rest]") {
    // The client got one result, "abc" and another result. The new server has no results yet.
    const auto execution = std::make_shared<FakeExecution>();
    const auto stream = std::make_shared<FakeStream>();
    rest::StreamedJson carrier;
    rest::ExecutionStream::start(execution, stream, {5, ""}, carrier);
    execution->show("text/plain", "1");
    execution->print(1, "abc");
    CHECK(stream->sent.empty());
    execution->show("text/plain", "2");
    CHECK(stream->sent.empty());
    execution->print(1, "de");
    execution->show("text/plain", "3");
    execution->end("ok", 0);
    const std::vector<Sent> all = parse(stream->sent);
    REQUIRE(all.size() == 3);
    CHECK(all[0].data.at("text") == "de");
    CHECK(all[0].id == 7);
    CHECK(all[1].data.at("mime").at("text/plain") == "3");
    CHECK(all[1].id == 8);
}

TEST_CASE("a character cut in two comes whole, and invalid UTF-8 comes as base64", "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    const auto stream = std::make_shared<FakeStream>();
    rest::StreamedJson carrier;
    rest::ExecutionStream::start(execution, stream, {0, ""}, carrier);
    execution->print(1, "\xE2\x82");
    CHECK(stream->sent.empty());
    execution->print(1, "\xAC!");
    execution->print(1, "\xE2");
    execution->print(1, "x");
    execution->print(1, "\xC3");
    execution->end("ok", 0);
    const std::vector<Sent> all = parse(stream->sent);
    REQUIRE(all.size() == 4);
    CHECK(all[0].data.at("text") == "\xE2\x82\xAC!");
    CHECK(all[0].id == 4);
    CHECK(all[1].data.at("base64") == base64Encode("\xE2x"));
    CHECK(all[2].data.at("base64") == base64Encode("\xC3"));
    CHECK(all[3].name == "exit");
}

TEST_CASE("dropped output is counted in the next piece", "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    execution->print(1, "head");
    execution->skip = 1000;
    execution->print(1, "tail");
    execution->end("ok", 0);
    const std::vector<Sent> all = follow(execution, std::nullopt);
    REQUIRE(all.size() == 4);
    CHECK(!all[1].data.contains("droppedBytes"));
    CHECK(all[2].data.at("droppedBytes") == 1000);
    CHECK(all[2].id == 1008);
}

TEST_CASE("a slow client holds the pump back, not the execution", "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    for (int i = 0; i < 32; ++i) execution->print(1, std::string(16U << 10U, '\x01'));
    execution->end("ok", 0);
    const auto stream = std::make_shared<FakeStream>();
    stream->automatic = false;
    rest::StreamedJson carrier;
    rest::ExecutionStream::start(execution, stream, {std::nullopt, ""}, carrier);
    CHECK(stream->pending() > api::Stream::kHighWater);
    CHECK(stream->pending() < api::Stream::kHighWater + (128U << 10U));
    CHECK(!stream->closed());
    std::size_t rounds = 0;
    REQUIRE(eventually([&] {
        rounds += stream->drain() ? 1 : 0;
        return stream->closed();
    }));
    CHECK(rounds >= 2 * (3U << 20U) / (384U << 10U));  // events and exit, six bytes per character
    CHECK(stream->most < api::Stream::kHighWater + (128U << 10U));
    CHECK(parse(stream->sent).back().data.at("stdout").get<std::string>().size() == 32U << 14U);
    CHECK(bytesOf(parse(stream->sent), "stdout").size() == 32U << 14U);
}

TEST_CASE("the carrier's thread reads output from disk, and the callbacks' threads do not",
          "[unit][rest]") {
    const bool at_first = GENERATE(true, false);
    const auto execution = std::make_shared<FakeExecution>();
    std::string printed;
    for (int i = 0; i < 64; ++i) {
        const std::string piece(16U << 10U, static_cast<char>('a' + i % 26));
        execution->print(1, piece);
        printed += piece;
        if (i == 40) execution->show("text/plain", "first");
    }
    const auto stream = std::make_shared<FakeStream>();
    stream->automatic = false;
    rest::StreamedJson carrier;
    const auto store = [&] {
        execution->end("ok", 0);
        execution->on_disk = true;
    };
    if (at_first) store();
    rest::ExecutionStream::start(execution, stream, {std::nullopt, ""}, carrier);
    if (!at_first) {
        REQUIRE(stream->pending() > api::Stream::kHighWater);
        store();
    }
    REQUIRE(eventually([&] {
        stream->drain();
        return stream->closed();
    }));
    CHECK(execution->diskReadsHere() == 0);
    CHECK(stream->finished);
    CHECK(stream->most < api::Stream::kHighWater + (256U << 10U));
    const std::vector<Sent> all = parse(stream->sent);
    CHECK(all.front().name == "started");
    CHECK(bytesOf(all, "stdout") == printed);
    CHECK(std::count_if(all.begin(), all.end(),
                        [](const Sent& sent) { return sent.name == "result"; }) == 1);
    CHECK(all.back().name == "exit");
    CHECK(eventually([&] { return execution.use_count() == 1 && stream.use_count() == 1; }));
    CHECK(execution->subscriptions() == 0);
}

TEST_CASE("the carrier's thread finds a position after many results on disk", "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    for (int i = 0; i < 100; ++i) execution->show("text/plain", std::to_string(i));
    execution->print(1, "tail");
    execution->end("ok", 0);
    execution->on_disk = true;
    const auto stream = std::make_shared<FakeStream>();
    rest::StreamedJson carrier;
    rest::ExecutionStream::start(execution, stream, {99, ""}, carrier);
    REQUIRE(eventually([&] { return stream->closed(); }));
    CHECK(execution->diskReadsHere() == 0);
    const std::vector<Sent> all = parse(stream->sent);
    REQUIRE(all.size() == 3);
    CHECK(all[0].data.at("mime").at("text/plain") == "99");
    CHECK(all[1].data.at("text") == "tail");
}

TEST_CASE("a client that hangs up while its exit is sent frees the execution", "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    execution->print(1, std::string(1U << 20U, 'x'));
    execution->end("ok", 0);
    const auto stream = std::make_shared<FakeStream>();
    stream->automatic = false;
    rest::StreamedJson carrier;
    rest::ExecutionStream::start(execution, stream, {1U << 20U, ""}, carrier);
    REQUIRE(eventually([&] { return stream->pending() > api::Stream::kHighWater; }));
    stream->close();
    CHECK(eventually([&] { return execution.use_count() == 1 && stream.use_count() == 1; }));
    CHECK(execution->subscriptions() == 0);
}

TEST_CASE("a long result comes whole in its event, and is not queued at once", "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    execution->print(1, "one");
    execution->show("image/svg+xml", std::string(1U << 20U, 's'));
    const auto stream = std::make_shared<FakeStream>();
    stream->automatic = false;
    rest::StreamedJson carrier;
    rest::ExecutionStream::start(execution, stream, {0, ""}, carrier);
    int rounds = 0;
    while (stream->drain() && ++rounds < 100) continue;
    CHECK(rounds >= 2);
    CHECK(stream->most < api::Stream::kHighWater + (128U << 10U));
    const std::vector<Sent> all = parse(stream->sent);
    REQUIRE(all.size() == 2);
    CHECK(all[1].name == "result");
    CHECK(all[1].data.at("mime").at("image/svg+xml").get<std::string>().size() == 1U << 20U);
    stream->close();
    CHECK(execution.use_count() == 1);
}

TEST_CASE("a client that hangs up frees the pump and leaves the execution alone", "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    const auto stream = std::make_shared<FakeStream>();
    rest::StreamedJson carrier;
    rest::ExecutionStream::start(execution, stream, {std::nullopt, ""}, carrier);
    CHECK(execution->subscriptions() == 1);
    stream->close();
    CHECK(execution->subscriptions() == 0);
    CHECK(execution.use_count() == 1);
    execution->print(1, "nobody hears this");
    CHECK(!execution->finished());
}

TEST_CASE("a client that left before the pump begins frees the execution", "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    const auto stream = std::make_shared<FakeStream>();
    stream->close();
    rest::StreamedJson carrier;
    rest::ExecutionStream::start(execution, stream, {std::nullopt, ""}, carrier);
    CHECK(execution->subscriptions() == 0);
    CHECK(execution.use_count() == 1);
}

TEST_CASE("output may come from many threads at once", "[unit][rest]") {
    rest::Turnstile turnstile;
    std::atomic<int> work{0};
    int inside = 0;
    int done = 0;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 10'000; ++i) {
                    work.fetch_add(1);
                    turnstile.pass([&] {
                        ++inside;  // not atomic: a race is a failure under the sanitizer
                        done += work.exchange(0);
                        --inside;
                    });
                }
            });
        }
    }
    CHECK(inside == 0);
    CHECK(done == 40'000);
}

TEST_CASE("many followers of an execution do not hold up the thread that brings its output",
          "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    rest::StreamedJson carrier;
    std::vector<std::shared_ptr<FakeStream>> streams;
    for (int i = 0; i < 20; ++i) {
        streams.push_back(std::make_shared<FakeStream>("crowd"));
        rest::ExecutionStream::start(execution, streams.back(), {std::nullopt, ""}, carrier);
    }
    streams.push_back(std::make_shared<FakeStream>("other"));
    rest::ExecutionStream::start(execution, streams.back(), {std::nullopt, ""}, carrier);
    for (int i = 0; i < 50; ++i) execution->print(1, std::to_string(i) + "\n");
    execution->show("text/plain", "shown");
    execution->end("ok", 0);
    int here = 0;
    for (const auto& stream : streams) {
        REQUIRE(eventually([&] { return stream->closed(); }));
        const std::vector<Sent> all = parse(stream->sent);
        CHECK(all.front().name == "started");
        CHECK(bytesOf(all, "stdout") == execution->view().stdout_bytes);
        CHECK(all[all.size() - 2].name == "result");
        CHECK(all.back().name == "exit");
        here += stream->senders.contains(std::this_thread::get_id()) ? 1 : 0;
    }
    CHECK(here == 5);  // four of the crowd, and the other one
    streams.clear();
    CHECK(eventually([&] { return execution.use_count() == 1; }));
    CHECK(execution->subscriptions() == 0);
}

TEST_CASE("a follower with turns that hangs up frees the execution", "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    rest::StreamedJson carrier;
    std::vector<std::shared_ptr<FakeStream>> streams;
    for (int i = 0; i < 6; ++i) {
        streams.push_back(std::make_shared<FakeStream>());
        rest::ExecutionStream::start(execution, streams.back(), {std::nullopt, ""}, carrier);
    }
    execution->print(1, "some");
    REQUIRE(eventually([&] { return streams.back()->until("some") != ""; }));
    for (const auto& stream : streams) stream->close();
    execution->print(1, "more");
    streams.clear();
    CHECK(eventually([&] { return execution->subscriptions() == 0; }));
    CHECK(eventually([&] { return execution.use_count() == 1; }));
}

TEST_CASE("an incomplete tail holds only bytes that can still become a character", "[unit][rest]") {
    const std::vector<std::pair<std::string, std::size_t>> all{
        {"", 0},         {"a", 0},        {"\xC3", 1},         {"\xC3\xA9", 0},
        {"\xE2\x82", 2}, {"\xE2", 1},     {"\xF0\x9F\x94", 3}, {"\xF0\x9F\x94\xA5", 0},
        {"\xFF", 0},     {"\x80\x80", 0}, {"\xC1", 0},
    };
    for (const auto& [bytes, expected] : all) CHECK(rest::incompleteTail(bytes) == expected);
}

TEST_CASE("events continue from the client's position", "[unit][rest]") {
    House house;
    house.events.add("workspace.created");
    house.events.add("workspace.reclaimed");
    FakeRequest request("GET", "/v1/events?limit=1");
    request.with("Accept", "text/event-stream").with("Last-Event-ID", "1");
    const api::Response response = house.rest.handle(request);
    const auto stream = std::make_shared<FakeStream>();
    std::get<api::StreamStarter>(response.body)(stream);
    house.events.add("sandbox.ready");
    const std::vector<Sent> all = parse(stream->sent);
    REQUIRE(all.size() == 2);
    CHECK(all[0].name == "workspace.reclaimed");
    CHECK(all[1].name == "sandbox.ready");
    CHECK(all[1].id == 3);
    stream->close();
    CHECK(house.events.subscriptions() == 0);
    CHECK(stream.use_count() == 1);
}

TEST_CASE("a place to resume from must be a number", "[unit][rest]") {
    House house;
    FakeRequest request("GET", "/v1/executions/" + kExecution + "/events");
    request.with("Last-Event-ID", "12x");
    CHECK_THROWS_AS(house.rest.handle(request), Error);
}

TEST_CASE("text cannot break out of its event", "[unit][rest]") {
    const std::string event = rest::sseEvent("stdout", 1, {{"text", "a\n\nevent: exit\r\n"}});
    CHECK(parse(event).size() == 1);
    CHECK(event.find('\r') == std::string::npos);
}

TEST_CASE(
    "a stored result is read for its position and its content, however much output precedes it",
    "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    for (int i = 0; i < 100; ++i) execution->print(1, std::string(100, 'x'));
    execution->show("text/plain", "late");
    execution->end("ok", 0);
    execution->on_disk = true;
    const auto stream = std::make_shared<FakeStream>();
    {
        rest::StreamedJson carrier;
        rest::ExecutionStream::start(execution, stream, {std::nullopt, ""}, carrier);
        REQUIRE(eventually([&] { return stream->finished.load(); }));
    }
    CHECK(parse(stream->sent).back().name == "exit");
    CHECK(execution->resultReads() <= 6);
}
