#include <catch2/catch.hpp>

#include "tests/support/Support.h"
#include "tests/unit/pool/agent/program/Harness.h"

using namespace hearth::agent::program;
using hearth::Json;
using hearth::agent::FrameType;

TEST_CASE("output keeps its order over both channels and its offsets", "[unit][agent][program]") {
    Bound b;
    Json run = exec("e", "for i in 1 2 3; do echo o$i; read x; echo e$i >&2; read x; done");
    run["stdin"] = true;
    const auto s = b.client.request(run);
    std::uint64_t offset = 0;
    std::string all;
    for (int i = 0; i < 6; ++i) {
        Frame f;
        do REQUIRE(b.client.next(f));
        while (f.header.type != FrameType::Data);
        CHECK(hearth::agent::getU64(reinterpret_cast<const unsigned char*>(f.payload.data())) ==
              offset);
        all += f.payload.substr(8);
        offset += f.payload.size() - 8;
        b.client.send(FrameType::Data, s, "\n");
    }
    CHECK(all == "o1\ne1\no2\ne2\no3\ne3\n");
    CHECK(b.client.finish(s).result()["status"] == "ok");
}

TEST_CASE("a flood keeps head and tail and does not grow the agent", "[unit][agent][program]") {
    Bound b;
    const long before = b.agent.rssKib();
    CHECK(before < 2'048);
    Json run = exec("e", "echo begin; head -c 50000000 /dev/zero; echo end");
    const auto s = b.client.request(run);
    b.client.awaitNote(s);
    // Another execution is served while the flood's stream is not read.
    Outcome other = b.client.ask(exec("small", "echo hi"));
    CHECK(other.out == "hi\n");
    Outcome o = b.client.finish(s);
    CHECK(o.out.substr(0, 6) == "begin\n");
    CHECK(o.out.substr(o.out.size() - 4) == "end\n");
    CHECK(o.result()["outputBytes"] == 50'000'010);
    CHECK(o.result()["droppedBytes"] == 50'000'010 - 65'536);
    CHECK(b.agent.rssKib() < 4'096);

    // A reader that comes afterwards sees exactly what is kept, and the gap.
    Outcome late = b.client.ask({{"op", "attach"}, {"id", "e"}, {"offset", 0}});
    CHECK(late.out.size() == 65'536);
    CHECK(late.gap == 50'000'010 - 65'536);
}

TEST_CASE("a client without credit learns of the end before the rest of the output",
          "[unit][agent][program]") {
    Bound b;
    Json run = exec("e", "head -c 1000000 /dev/zero");
    run["outputLimit"] = 2'000'000;
    const auto s = b.client.request(run);
    std::size_t received = 0;
    Frame f;
    for (;;) {  // grants nothing
        REQUIRE(b.client.next(f));
        if (f.header.type == FrameType::Data) received += f.payload.size() - 8;
        if (f.header.type == FrameType::Note && f.payload == R"({"ended":true})") break;
    }
    CHECK(received == hearth::agent::kInitialCredit);
    b.client.credit(s, 2'000'000);
    const Outcome o = b.client.finish(s);
    CHECK(o.out.size() == 1'000'000 - received);
    CHECK_FALSE(o.note.contains("ended"));  // it is told once
    CHECK(b.client.ask(exec("small", "echo hi")).note.contains("started"));
}

TEST_CASE("a paced program waits for its reader and loses nothing", "[unit][agent][program]") {
    Bound b;
    Json run = exec("e", "head -c 20000000 /dev/zero; touch written; echo end >&2");
    run["outputLimit"] = 1'048'576;
    run["paced"] = true;
    const auto s = b.client.request(run);
    b.client.awaitNote(s);
    // Another execution is served meanwhile.
    CHECK(b.client.ask(exec("small", "echo hi")).out == "hi\n");
    const Outcome o = b.client.finish(s);
    CHECK(o.out.size() == 20'000'000);
    CHECK(o.gap == 0);
    CHECK(o.err == "end\n");
    CHECK(b.agent.rssKib() < 6'144);
}

TEST_CASE("a paced program goes on when its reader hangs up", "[unit][agent][program]") {
    AgentProcess agent;
    {
        Client reader(agent.socket());
        REQUIRE(reader.ask(hello()).ok);
        REQUIRE(reader.ask(bindRequest()).ok);
        Json run = exec("e", "head -c 20000000 /dev/zero; touch written; echo end");
        run["outputLimit"] = 1'048'576;
        run["paced"] = true;
        reader.awaitNote(reader.request(run));
    }
    CHECK(hearth::test::eventually(
        [&] { return std::filesystem::exists(agent.root() + "/written"); }));
    Client later(agent.socket());
    REQUIRE(later.ask(hello(2)).ok);
    const Outcome o = later.ask({{"op", "attach"}, {"id", "e"}, {"offset", 0}});
    CHECK(o.result()["outputBytes"] == 20'000'004);
    CHECK(o.out.substr(o.out.size() - 4) == "end\n");
}

TEST_CASE("a client that does not read stops neither the execution nor the agent",
          "[unit][agent][program]") {
    Bound b;
    Client slow(b.agent.socket());
    REQUIRE(slow.ask(withClaim("c1")).ok);
    Json run = exec("e", "head -c 20000000 /dev/zero");
    run["outputLimit"] = 4'000'000;
    const auto s = b.client.request(run);
    b.client.awaitNote(s);
    slow.request({{"op", "attach"}, {"id", "e"}, {"offset", 0}});
    CHECK(b.client.finish(s).result()["status"] == "ok");
    CHECK(b.agent.rssKib() < 12'000);
}

TEST_CASE("an execution outlives its connection and is resumed by offset",
          "[unit][agent][program]") {
    Bound b;
    Json run = exec("e", "echo one; read x; echo two");
    run["stdin"] = true;
    const auto s = b.client.request(run);
    b.client.await(s, "one\n");
    Client second(b.agent.socket());
    Outcome seen = second.ask(hello(2));
    REQUIRE(seen.body["executions"].size() == 1);
    CHECK(seen.body["executions"][0]["state"] == "running");
    CHECK(seen.body["running"] == 1);
    const auto attached = second.request({{"op", "attach"}, {"id", "e"}, {"offset", 4}});
    second.awaitNote(attached);
    second.send(FrameType::Data, attached, "\n");
    Outcome o = second.finish(attached);
    CHECK(o.out == "two\n");
    CHECK(o.pieces.at(0).first == 4);
    CHECK(o.result()["outputBytes"] == 8);
}

TEST_CASE("an execution's note is sent to each client that comes back", "[unit][agent][program]") {
    Bound b;
    Json run = exec("e", "true");
    run["note"] = {{"collect", {"**/*.png", "ü"}}};
    CHECK_FALSE(b.client.ask(run).note["started"].contains("note"));
    Outcome again = b.client.ask({{"op", "attach"}, {"id", "e"}, {"offset", 0}});
    CHECK(again.note["started"]["note"] == run["note"]);
    Json large = exec("f", "true");
    large["note"] = {{"text", std::string(70'000, 'x')}};
    CHECK(b.client.ask(large).code() == "BAD_REQUEST");
}

TEST_CASE("standard input streams with credit until End", "[unit][agent][program]") {
    Bound b;
    Json run = exec("e", "md5sum");
    run["stdin"] = true;
    const auto s = b.client.request(run);
    b.client.awaitNote(s);
    const std::string piece(65'536, 'x');
    std::uint64_t sent = 0;
    for (int i = 0; i < 64; ++i) {
        while (sent + piece.size() > hearth::agent::kInitialCredit + b.client.credits[s]) {
            Frame f;
            REQUIRE(b.client.next(f));
            REQUIRE(f.header.type == FrameType::Credit);
            b.client.credits[s] +=
                hearth::agent::getU32(reinterpret_cast<const unsigned char*>(f.payload.data()));
        }
        b.client.send(FrameType::Data, s, piece);
        sent += piece.size();
    }
    b.client.send(FrameType::End, s, "");
    Outcome o = b.client.finish(s);
    CHECK(o.out == "44981362d3ba9b5bacaf017c2f29d355  -\n");
}

TEST_CASE("a terminal is a terminal, can be resized and answers ^C", "[unit][agent][program]") {
    Bound b;
    Json run = exec("e",
                    "tty >/dev/null && stty size; read x; stty size; trap 'echo caught; exit 7' "
                    "INT; echo ready; while :; do sleep 0.05; done");
    run["stdin"] = true;
    run["pty"] = {{"cols", 100}, {"rows", 30}};
    const auto s = b.client.request(run);
    b.client.await(s, "30 100");
    CHECK(b.client.ask({{"op", "resize"}, {"id", "e"}, {"cols", 90}, {"rows", 20}}).ok);
    b.client.send(FrameType::Data, s, "\n");
    b.client.await(s, "20 90");
    b.client.await(s, "ready");
    b.client.send(FrameType::Data, s, "\x03");
    Outcome o = b.client.finish(s);
    CHECK(o.out.find("caught") != std::string::npos);
    CHECK(o.result()["exitCode"] == 7);
    CHECK(o.err.empty());
}

TEST_CASE("cancelling a stream leaves the execution running", "[unit][agent][program]") {
    Bound b;
    const auto s = b.client.request(exec("e", "sleep 0.2; echo late"));
    b.client.awaitNote(s);
    b.client.send(FrameType::Cancel, s, "");
    CHECK(b.client.finish(s).code() == "CANCELLED");
    CHECK(b.client.ask({{"op", "attach"}, {"id", "e"}, {"offset", 0}}).out == "late\n");
}

TEST_CASE("a program opens its standard streams again by their paths", "[unit][agent][program]") {
    Bound b;
    Json run = exec("e1",
                    "echo out > /dev/stdout; echo err > /proc/self/fd/2; head -n 1 /dev/stdin; "
                    "head -n 1 /proc/self/fd/0");
    run["stdin"] = true;
    const auto s = b.client.request(run);
    b.client.send(FrameType::Data, s, "one\n");
    b.client.await(s, "one\n");
    b.client.send(FrameType::Data, s, "two\n");
    b.client.send(FrameType::End, s, "");
    const Outcome o = b.client.finish(s);
    CHECK(o.out == "out\none\ntwo\n");
    CHECK(o.err == "err\n");
    CHECK(o.result()["exitCode"] == 0);
}
