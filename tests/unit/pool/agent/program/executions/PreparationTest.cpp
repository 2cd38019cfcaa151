#include <catch2/catch.hpp>

#include "tests/unit/pool/agent/program/Harness.h"

using namespace hearth;
using namespace hearth::agent;
using namespace hearth::agent::program;

namespace {

/// Returns an execution that a shell script prepares.
Json prepared(const std::string& id, const std::string& script, const std::string& command) {
    Json body = exec(id, command);
    body["prepare"] = {{"argv", {"sh", "-c", script}}, {"input", "told"}};
    return body;
}

}  // namespace

TEST_CASE("the preparation of an execution runs first and adds nothing to its output",
          "[unit][agent][program]") {
    Bound b;
    const Outcome o = b.client.ask(
        prepared("e1", "cat; echo $A >&2; echo 1 > made; sleep 30 & exit 0", "cat made; echo two"));
    CHECK(o.out == "1\ntwo\n");
    CHECK(o.err.empty());
    CHECK(o.result()["status"] == "ok");
    const Json told = o.result()["prepared"];
    CHECK(told["ok"] == true);
    CHECK(told["output"] == "told\n");
    CHECK(told["errors"] == "1\n");
    CHECK(told["durationMs"].get<std::int64_t>() < 20'000);
    CHECK_FALSE(b.client.ask(exec("e2", "true")).result().contains("prepared"));
}

TEST_CASE("nothing else runs after a failed preparation", "[unit][agent][program]") {
    Bound b;
    Outcome o = b.client.ask(prepared("e1", "echo why; exit 3", "echo never > made"));
    CHECK(o.out.empty());
    CHECK(o.result()["status"] == "failed");
    CHECK(o.result()["exitCode"] == 3);
    CHECK(o.result()["prepared"]["ok"] == false);
    CHECK(o.result()["prepared"]["output"] == "why\n");
    CHECK_FALSE(std::filesystem::exists(b.agent.root() + "/made"));
    Json body = exec("e2", "echo never > made");
    body["prepare"] = {{"argv", {"no-such-program"}}, {"input", ""}};
    o = b.client.ask(body);
    CHECK(o.result()["exitCode"] == 127);
    CHECK(o.result()["prepared"]["errors"].get<std::string>().find("not found") !=
          std::string::npos);
    body["id"] = "e3";
    body["prepare"] = {{"argv", Json::array()}};
    CHECK(b.client.ask(body).code() == "BAD_REQUEST");
}

TEST_CASE("the deadline and a kill of an execution end its preparation, too",
          "[unit][agent][program]") {
    Bound b;
    Json body = prepared("e1", "sleep 300 & sleep 300", "echo never");
    body["timeoutMs"] = 200;
    Outcome o = b.client.ask(body);
    CHECK(o.result()["status"] == "timeout");
    CHECK(o.result()["prepared"]["ok"] == false);
    CHECK(o.out.empty());
    const auto stream = b.client.request(prepared("e2", "sleep 300", "echo never"));
    b.client.awaitNote(stream);
    CHECK(b.client.ask({{"op", "signal"}, {"id", "e2"}, {"signal", "KILL"}}).ok);
    o = b.client.finish(stream);
    CHECK(o.result()["status"] == "killed");
    CHECK(o.out.empty());
    CHECK(b.client.ask(prepared("e3", "true", "echo after")).out == "after\n");
}

TEST_CASE("input for an execution waits until its preparation has ended",
          "[unit][agent][program]") {
    Bound b;
    Json body = prepared("e1", "cat > /dev/null; sleep 0.1", "cat");
    body["stdin"] = true;
    const auto stream = b.client.request(body);
    b.client.awaitNote(stream);
    b.client.send(FrameType::Data, stream, "for the work");
    b.client.send(FrameType::End, stream, "");
    CHECK(b.client.finish(stream).out == "for the work");
}

TEST_CASE("the output of a preparation is bounded and becomes text", "[unit][agent][program]") {
    Bound b;
    Outcome o = b.client.ask(
        prepared("e1", "head -c 1000000 /dev/zero | tr '\\0' x; echo last", "echo on"));
    CHECK(o.out == "on\n");
    std::string kept = o.result()["prepared"]["output"];
    CHECK(kept.size() <= 48U << 10U);
    CHECK(kept.ends_with("xlast\n"));
    o = b.client.ask(prepared("e2", "head -c 100000 /dev/zero; printf '\\377' >&2", "echo on"));
    CHECK(o.out == "on\n");
    CHECK(o.result()["prepared"]["output"] == "");
    CHECK(o.result()["prepared"]["errors"] == "\xEF\xBF\xBD");
}

TEST_CASE("a preparation can read the code, which then runs as usual", "[unit][agent][program]") {
    Bound b;
    Json body{{"op", "exec"},
              {"id", "e1"},
              {"language", "python"},
              {"code", "print(open('seen').read())"},
              {"timeoutMs", 20'000},
              {"outputLimit", 65'536},
              {"prepare", {{"argv", {"sh", "-c", "cat > seen"}}, {"input", "{}"}, {"code", true}}}};
    CHECK(b.client.ask(body).out == "{}\nprint(open('seen').read())\n");
    REQUIRE(b.client.ask({{"op", "context"}, {"id", "c"}, {"language", "python"}}).ok);
    body["context"] = "c";
    body["id"] = "e2";
    body["code"] = "x = 1";
    CHECK(b.client.ask(body).result()["interpreter"] == "context");
    body["id"] = "e3";
    body["code"] = "print(x, len(open('seen').read()))";
    const Outcome o = b.client.ask(body);
    CHECK(o.out == "1 37\n");
    CHECK(o.result()["contextKept"] == true);
    CHECK(o.result()["prepared"]["ok"] == true);
    body["id"] = "e4";
    body["prepare"]["argv"] = {"sh", "-c", "exit 1"};
    CHECK(b.client.ask(body).result()["status"] == "failed");
    body.erase("prepare");
    body["id"] = "e5";
    body["code"] = "print(x)";
    CHECK(b.client.ask(body).out == "1\n");
}
