#include <catch2/catch.hpp>
#include <random>

#include "api/rest/model/Answers.h"
#include "api/rest/streams/ExecutionPieces.h"
#include "tests/support/FakeServices.h"

using namespace hearth;
using namespace hearth::test;

namespace {

std::string inPieces(const std::shared_ptr<controller::Execution>& execution, std::size_t size) {
    rest::ExecutionPieces pieces(execution, execution->viewUpTo(0), "trace", "http://here", size);
    std::string all;
    while (pieces.next(all)) continue;
    CHECK_FALSE(pieces.next(all));
    return all;
}

std::string atOnce(const std::shared_ptr<controller::Execution>& execution) {
    return dumpJson(rest::executionJson(execution->view(), "trace", "http://here"));
}

}  // namespace

TEST_CASE("an execution's JSON is the same in pieces of any size", "[unit][rest]") {
    std::mt19937 random(7);  // NOLINT(bugprone-random-generator-seed): the same bytes each time
    const auto pick = [&](std::size_t below) { return random() % below; };
    const std::vector<std::string> bits{
        "\xF0\x9F\x94\xA5", "\xC3\xA9", "\xE2\x82\xAC", "\xFF",          "\xE2\x82",
        "\xF0\x9F",         "\xC0\xAF", "\x01\x1F",     "\"stdout\":\"", "\\n\"",
        "\"results\":[",    "plain",    "\n\r\t\x7F",   "\xED\xA0\x80"};
    for (int round = 0; round < 60; ++round) {
        const auto execution = std::make_shared<FakeExecution>();
        for (std::size_t i = pick(12); i > 0; --i) {
            std::string bytes;
            for (std::size_t j = pick(9); j > 0; --j) {
                const std::string& bit = bits[pick(bits.size())];
                bytes += bit.substr(0, 1 + pick(bit.size()));
                if (pick(3) == 0) bytes.push_back(static_cast<char>(random()));
            }
            if (!bytes.empty()) execution->print(pick(2) == 0 ? 1 : 2, bytes);
            if (pick(5) == 0) execution->show("text/plain", "\"results\":[ \x01", pick(2) == 0);
        }
        if (pick(3) == 0) {
            execution->state.dropped_bytes = 7;
            execution->state.truncated = true;
        }
        execution->state.language = pick(2) == 0 ? "python" : "";
        execution->state.error = Json{{"name", "\"stderr\":\""}, {"message", "\xFF\x01"}};
        execution->end("failed", 1);
        const std::string expected = atOnce(execution);
        for (const std::size_t size : {1U, 2U, 3U, 4U, 5U, 7U, 64U, 16'384U}) {
            REQUIRE(inPieces(execution, size) == expected);
        }
    }
}

TEST_CASE("an execution without any output comes in pieces too", "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    CHECK(inPieces(execution, 16) == atOnce(execution));
}

TEST_CASE("no piece holds more than its share, however long output and results are",
          "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    execution->print(1, std::string(1U << 20U, '\x01'));
    execution->print(2, std::string(1U << 20U, '\xFF'));
    execution->show("image/svg+xml", std::string(1U << 20U, 'x'));
    const std::string numbers =
        "[1e5, 2.50, 12345678901234567890.123, \"\\u00e9\\u0001\"" + std::string(70'000, ' ') + "]";
    execution->state.results.push_back(controller::readResult(
        "{\"mime\": {\"application/json\": " + numbers + "}, \n\"main\": true}", 0));
    REQUIRE(execution->state.results.back());
    execution->end("ok", 0);
    rest::ExecutionPieces pieces(execution, execution->viewUpTo(0), "trace", "http://here");
    std::string all;
    std::size_t most = 0;
    for (bool more = true; more;) {
        const std::size_t before = all.size();
        more = pieces.next(all);
        most = std::max(most, all.size() - before);
    }
    CHECK(all == atOnce(execution));
    CHECK(most < 128U << 10U);
    CHECK(all.find('\n') == std::string::npos);  // so that it fits into one event
}

TEST_CASE("the JSON of a running execution has its output so far and counts dropped bytes",
          "[unit][rest]") {
    const auto execution = std::make_shared<FakeExecution>();
    execution->print(1, "first");
    execution->print(2, "error");
    execution->print(1, "last");
    rest::ExecutionPieces pieces(execution, execution->viewUpTo(0), "", "", 4);
    std::string all;
    pieces.next(all);
    execution->print(1, " and later");
    execution->chunks.erase(execution->chunks.begin());  // the log has dropped its oldest chunk
    while (pieces.next(all)) continue;
    const Json told = parseJson(all);
    CHECK(told.at("stdout") == "[… 5 bytes were not kept …]\nlast");
    CHECK(told.at("stderr") == "error");
    CHECK(told.at("droppedBytes") == 5);
    CHECK(told.at("truncated") == true);
    CHECK(told.at("status") == "running");
}
