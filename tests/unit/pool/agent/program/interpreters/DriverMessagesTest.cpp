#include <catch2/catch.hpp>

#include "pool/agent/program/executions/ResultLog.h"
#include "pool/agent/program/interpreters/DriverMessages.h"
#include "pool/agent/program/interpreters/DriverWork.h"

using namespace hearth::agent;

TEST_CASE("a driver's messages are found wherever the stream is cut", "[unit][agent][program]") {
    const std::string stream = "ready 0\nresult 5\nab\ncddone 7\n0 12 34";
    for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
        DriverMessages messages;
        std::vector<std::string> seen;
        for (const std::string& part : {stream.substr(0, cut), stream.substr(cut)}) {
            messages.append(part);
            std::string_view kind;
            std::string_view payload;
            while (messages.next(kind, payload)) {
                seen.push_back(std::string(kind) + "=" + std::string(payload));
            }
        }
        CHECK(seen == std::vector<std::string>{"ready=", "result=ab\ncd", "done=0 12 34"});
        CHECK_FALSE(messages.broken());
    }
}

TEST_CASE("an invalid or too large message of a driver breaks the stream",
          "[unit][agent][program]") {
    for (const char* bad : {"\n", "done\n", "done -1\n", "done x\n", "done 1x\n", "done 4097\n",
                            "error 65537\n", "result 4194305\n", "done 99999999999999999999\n",
                            "a line without an end that is long", "done  1\n1"}) {
        DriverMessages messages;
        messages.append(bad);
        std::string_view kind;
        std::string_view payload;
        CHECK_FALSE(messages.next(kind, payload));
        CHECK(messages.broken());
    }
}

TEST_CASE("results are one bounded sequence, each after the output before it",
          "[unit][agent][program]") {
    ResultLog log;
    log.append("{}", 10);
    log.append("[1]", 20);
    CHECK(log.size() == 4 + 2 + 4 + 3);
    ResultLog::Piece piece = log.read(0, 100);
    CHECK(piece.behind == 10);
    CHECK(piece.bytes == std::string_view("\2\0\0\0{}", 6));
    piece = log.read(6, 4);
    CHECK(piece.behind == 20);
    CHECK(piece.bytes == std::string_view("\3\0\0\0", 4));
    CHECK(log.read(log.size(), 100).bytes.empty());
    for (int i = 0; i < 200; ++i) log.append("{}", 30);
    CHECK(log.dropped() == 102);
    ResultLog large;
    large.append(std::string(ResultLog::kMaxBytes - 4, ' '), 0);
    large.append("", 0);
    CHECK(large.dropped() == 1);
}

TEST_CASE("a work message begins with its own length", "[unit][agent][program]") {
    for (const std::size_t size : {0U, 60U, 70U, 80U, 900U, 960U, 970U, 980U, 9970U}) {
        const std::string work =
            encodeWork("run", "/w", "main.py", "", {"A=1", "B="}, std::string(size, 'x'));
        const std::size_t head = work.find('\0');
        CHECK(std::stoul(work.substr(0, head)) == work.size());
        CHECK(work.back() == '\0');
    }
}
