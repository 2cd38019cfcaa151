#include <catch2/catch.hpp>

#include "tests/unit/pool/agent/secure/Ends.h"

using namespace hearth::agent::secure;
using State = Opener::State;

namespace {

/// Both halves of one direction.
struct Line {
    Line() {
        REQUIRE(initialise());
        StreamKey key;
        StreamKey same;
        randombytes_buf(key.data(), key.kSize);
        std::copy(key.data(), key.data() + key.kSize, same.data());
        sealer = std::make_unique<Sealer>(key);
        opener = std::make_unique<Opener>(std::move(same));
    }
    std::string sealed(std::string_view text) const {
        std::string wire;
        sealer->seal(text, wire);
        return wire;
    }
    std::unique_ptr<Sealer> sealer;
    std::unique_ptr<Opener> opener;
    std::string plain;
};

}  // namespace

TEST_CASE("records of every size arrive whole, however the bytes are cut",
          "[unit][agent][secure]") {
    const std::size_t piece = GENERATE(std::size_t{1}, std::size_t{3}, std::size_t{20},
                                       std::size_t{5000}, std::size_t{1U << 20U});
    Line line;
    std::string sent;
    std::string wire;
    for (const std::size_t size : {std::size_t{1}, std::size_t{0}, std::size_t{17}, kMaxRecord - 1,
                                   kMaxRecord, kMaxRecord + 1, 3 * kMaxRecord}) {
        const std::string text(size, static_cast<char>('a' + size % 23));
        line.sealer->seal(text, wire);
        sent += text;
    }
    for (std::size_t at = 0; at < wire.size(); at += piece) {
        REQUIRE(line.opener->open(std::string_view(wire).substr(at, piece), line.plain) ==
                State::Open);
    }
    CHECK(line.plain == sent);
    // Nine records, as an empty text adds none. The wire also has the start of the stream.
    CHECK(line.opener->opened() == 9);
    CHECK(wire.size() == sent.size() + sizeof(StreamStart) + 9 * kRecordOverhead);
}

TEST_CASE("sealed bytes cannot be read on the wire", "[unit][agent][secure]") {
    Line line;
    CHECK(line.sealed("a secret of the tenant").find("secret") == std::string::npos);
}

TEST_CASE("a flipped bit in any byte of a record is seen, and nothing follows",
          "[unit][agent][secure]") {
    const std::size_t size = sizeof(StreamStart) + kRecordOverhead + 5;
    for (std::size_t at = 0; at < size; ++at) {
        Line line;
        std::string wire = line.sealed("hello");
        REQUIRE(wire.size() == size);
        wire[at] ^= 4;
        // A record whose length has grown waits for more bytes, or takes those of the next record.
        wire += line.sealed(std::string(kMaxRecord, 'x'));
        INFO("byte " << at);
        CHECK(line.opener->open(wire, line.plain) != State::Ended);
        line.opener->open(line.sealed(std::string(2 * kMaxRecord, 'x')), line.plain);
        CHECK(line.opener->state() == State::Broken);
        CHECK(line.plain.empty());
    }
}

TEST_CASE("a record that is repeated, left out or moved is seen", "[unit][agent][secure]") {
    Line line;
    const std::string first = line.sealed("one");
    const std::string second = line.sealed("two");
    const std::string third = line.sealed("three");
    REQUIRE(line.opener->open(first, line.plain) == State::Open);
    SECTION("repeated") {
        REQUIRE(line.opener->open(second, line.plain) == State::Open);
        CHECK(line.opener->open(second, line.plain) == State::Broken);
        CHECK(line.plain == "onetwo");
    }
    SECTION("left out") {
        CHECK(line.opener->open(third, line.plain) == State::Broken);
        CHECK(line.plain == "one");
    }
    SECTION("moved") {
        CHECK(line.opener->open(third + second, line.plain) == State::Broken);
        CHECK(line.plain == "one");
    }
    // After any break, even the right record comes too late.
    CHECK(line.opener->open(second, line.plain) == State::Broken);
}

TEST_CASE("a peer that takes over a connection later can send no valid record",
          "[unit][agent][secure]") {
    Line line;
    Line his;
    REQUIRE(line.opener->open(line.sealed("before"), line.plain) == State::Open);
    const bool own_start = GENERATE(true, false);
    std::string wire = his.sealed("after");
    if (!own_start) wire.erase(0, sizeof(StreamStart));
    line.opener->open(wire, line.plain);
    line.opener->open(std::string(2 * kMaxRecord, 'x'), line.plain);
    CHECK(line.opener->state() == State::Broken);
    CHECK(line.plain == "before");
}

TEST_CASE("a record sealed for one direction does not open in the other", "[unit][agent][secure]") {
    using namespace hearth::agent::secure::test;
    World world;
    AgentHandshake agent(world.server.publicKey(), world.identity, kPod);
    ServerHandshake server(world.server, world.identity.publicKey(), kPod, Purpose::Control);
    const Meeting meeting(agent, server);
    REQUIRE(meeting.server_says == Progress::Done);
    Session of_server = server.take();
    std::string wire;
    std::string plain;
    of_server.sealer->seal("echo", wire);
    CHECK(of_server.opener->open(wire.substr(sizeof(StreamStart)), plain) == State::Broken);
    CHECK(plain.empty());
}

TEST_CASE("a clean end differs from a cut connection", "[unit][agent][secure]") {
    Line line;
    std::string wire = line.sealed("all");
    std::string last;
    line.sealer->finish(last);
    for (std::size_t size = 0; size < last.size(); ++size) {
        Line cut;
        std::string whole = cut.sealed("all");
        std::string end;
        cut.sealer->finish(end);
        CHECK(cut.opener->open(whole + end.substr(0, size), cut.plain) == State::Open);
    }
    CHECK(line.opener->open(wire + last, line.plain) == State::Ended);
    CHECK(line.plain == "all");
    CHECK(line.opener->open("x", line.plain) == State::Broken);
}

TEST_CASE("a length that no record has is refused before its bytes come", "[unit][agent][secure]") {
    Line line;
    REQUIRE(line.opener->open(line.sealed("ok"), line.plain) == State::Open);
    const std::string length =
        GENERATE(std::string("\xff\xff\xff\xff", 4), std::string("\x00\x00\x00\x00", 4),
                 std::string("\x10\x00\x00\x00", 4), std::string("\x12\x40\x00\x00", 4));
    CHECK(line.opener->open(length, line.plain) == State::Broken);
}

TEST_CASE("both sides take a new key after a fixed number of records", "[unit][agent][secure]") {
    Line line;
    std::string wire;
    for (std::uint32_t i = 0; i < kRecordsPerKey + 3; ++i) {
        wire.clear();
        line.sealer->seal("x", wire);
        REQUIRE(line.opener->open(wire, line.plain) == State::Open);
    }
    CHECK(line.plain.size() == kRecordsPerKey + 3);
}
