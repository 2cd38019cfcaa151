#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "pool/agent/protocol/OutputLog.h"

using hearth::agent::Channel;
using hearth::agent::OutputLog;

namespace {

struct Seen {
    std::string out;
    std::string err;
    std::uint64_t gap = 0;
};

Seen readAll(const OutputLog& log, std::uint64_t from = 0, std::size_t piece = 1'000'000) {
    Seen seen;
    for (OutputLog::Chunk c = log.read(from, piece); !c.bytes.empty(); c = log.read(from, piece)) {
        seen.gap += c.offset - from;
        (c.channel == Channel::Stderr ? seen.err : seen.out) += c.bytes;
        from = c.offset + c.bytes.size();
    }
    return seen;
}

}  // namespace

TEST_CASE("output keeps the order and the channel of its bytes", "[unit][agent]") {
    OutputLog log(100);
    log.append(Channel::Stdout, "one");
    log.append(Channel::Stderr, "two");
    log.append(Channel::Stdout, "three");
    const OutputLog::Chunk first = log.read(0, 100);
    CHECK(first.bytes == "one");
    const OutputLog::Chunk second = log.read(3, 100);
    CHECK(second.offset == 3);
    CHECK(second.channel == Channel::Stderr);
    CHECK(second.bytes == "two");
    CHECK(log.read(6, 2).bytes == "th");
    CHECK(log.read(11, 5).bytes.empty());
    CHECK(log.read(99, 5).bytes.empty());
    CHECK(log.total() == 11);
    CHECK(log.dropped() == 0);
}

TEST_CASE("head and tail are kept and the gap shows in the offset", "[unit][agent]") {
    OutputLog log(10);
    log.append(Channel::Stdout, "0123456789abcdef");
    CHECK(log.total() == 16);
    CHECK(log.dropped() == 6);
    CHECK(log.read(0, 100).bytes == "01234");
    const OutputLog::Chunk tail = log.read(5, 100);
    CHECK(tail.offset == 11);
    const Seen seen = readAll(log);
    CHECK(seen.out == "01234bcdef");
    CHECK(seen.gap == 6);
    CHECK(readAll(log, 13).out == "def");
}

TEST_CASE("exactly the limit drops nothing", "[unit][agent]") {
    OutputLog log(10);
    log.append(Channel::Stdout, "0123456789");
    CHECK(log.dropped() == 0);
    CHECK(readAll(log).out == "0123456789");
    log.append(Channel::Stdout, "x");
    CHECK(log.dropped() == 1);
    CHECK(readAll(log).out == "012346789x");
}

TEST_CASE("the log agrees with a plain string for random writes and limits", "[unit][agent]") {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        const std::size_t limit = 2 + random() % 600;
        OutputLog log(limit);
        std::string bytes;
        std::string channels;
        const auto writes = random() % 20;
        for (unsigned i = 0; i < writes; ++i) {
            const bool err = random() % 2 == 0;
            std::string text(random() % (i % 5 == 0 ? 2'000 : 90), '\0');
            for (char& c : text) c = static_cast<char>('a' + random() % 26);
            log.append(err ? Channel::Stderr : Channel::Stdout, text);
            bytes += text;
            channels.append(text.size(), err ? 'e' : 'o');
        }
        REQUIRE(log.total() == bytes.size());
        const std::size_t half = limit / 2;
        const std::size_t tail = bytes.size() > 2 * half ? bytes.size() - half : half;
        REQUIRE(log.dropped() == (bytes.size() > 2 * half ? bytes.size() - 2 * half : 0));
        std::uint64_t from = random() % (bytes.size() + 1);
        std::uint64_t expected = from;
        while (true) {
            const OutputLog::Chunk c = log.read(from, 1 + random() % 200);
            if (c.bytes.empty()) break;
            if (expected >= half && expected < tail) expected = tail;
            REQUIRE(c.offset == expected);
            REQUIRE(c.bytes == bytes.substr(c.offset, c.bytes.size()));
            REQUIRE(channels.substr(c.offset, c.bytes.size()) ==
                    std::string(c.bytes.size(), c.channel == Channel::Stderr ? 'e' : 'o'));
            expected = from = c.offset + c.bytes.size();
        }
        REQUIRE(from == bytes.size());
        for (int i = 0; i < 20; ++i) {
            std::uint64_t at = random() % (bytes.size() + 1);
            const std::uint64_t before = log.stderrBefore(at);
            if (at > half && at < tail) at = tail;
            const std::string upto = channels.substr(0, at);
            REQUIRE(before == static_cast<std::uint64_t>(std::ranges::count(upto, 'e')));
        }
    }
}

TEST_CASE("a copy that has missed a part knows how much of it was stderr's", "[unit][agent]") {
    OutputLog copy(10);
    copy.append(Channel::Stderr, "ab");
    copy.append(Channel::Stdout, "cde");
    copy.skipTo(1'000, 302);
    copy.append(Channel::Stderr, "xyz");
    copy.append(Channel::Stdout, "12345678");  // nothing of "xyz" stays
    CHECK(copy.stderrBefore(5) == 2);
    CHECK(copy.stderrBefore(1'006) == 305);
    CHECK(copy.stderrBefore(copy.total()) == 305);
    copy.skipTo(2'000, 5'000);  // more than there can be
    CHECK(copy.stderrBefore(2'000) == 305 + 989);
}
