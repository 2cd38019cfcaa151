#include <catch2/catch.hpp>

#include "tests/unit/pool/agent/program/Harness.h"

using namespace hearth::agent::program;
using hearth::Json;

TEST_CASE("the folder of code holds files beside it and is removed after its run",
          "[unit][agent][program]") {
    Bound b;
    Json run = {{"op", "exec"},
                {"id", "e1"},
                {"language", "shell"},
                {"code", "d=${0%/*}; mkdir $d/sub; echo x > $d/sub/x; echo here; cat $0"}};
    CHECK(b.client.ask(run).out == "here\n" + run["code"].get<std::string>());
    CHECK(b.client.ask({{"op", "touch"}}).ok);  // the folder goes between two answers
    CHECK(std::filesystem::is_empty(b.agent.run()));
}

TEST_CASE("code that cannot be written is refused, not started", "[unit][agent][program]") {
    Bound b;
    std::filesystem::remove(b.agent.run());
    const Outcome o =
        b.client.ask({{"op", "exec"}, {"id", "e1"}, {"language", "shell"}, {"code", "echo ran"}});
    CHECK(o.code() == "UNWRITTEN");
    CHECK(b.client.ask(exec("e1", "echo ran")).out == "ran\n");
}

TEST_CASE("a language without a channel has neither its variable nor its descriptor",
          "[unit][agent][program]") {
    Bound b;
    const Outcome o = b.client.ask({{"op", "exec"},
                                    {"id", "e1"},
                                    {"language", "silent"},
                                    {"code", "env | grep -c CHANNEL; [ ! -e /proc/$$/fd/3 ]"}});
    CHECK(o.out == "0\n");
    CHECK(o.result()["exitCode"] == 0);
}

TEST_CASE("a request names no other channel for its code", "[unit][agent][program]") {
    Bound b;
    const Outcome o =
        b.client.ask({{"op", "exec"},
                      {"id", "e1"},
                      {"language", "shell"},
                      {"env", {{"HEARTH_CHANNEL", "1"}, {"HEARTH_CHANNELS", "kept"}}},
                      {"code", "echo $HEARTH_CHANNELS; printf 'error 2\\n{}' >&$HEARTH_CHANNEL"}});
    CHECK(o.out == "kept\n");
    CHECK(o.result()["report"] == "{}");
}

TEST_CASE("code runs by the image's table and leaves its report", "[unit][agent][program]") {
    Bound b;
    Json run = {{"op", "exec"},
                {"id", "e1"},
                {"language", "shell"},
                {"code", "echo hi; printf 'error 7\\n{\"x\":1}' >&$HEARTH_CHANNEL"}};
    Outcome o = b.client.ask(run);
    CHECK(o.out == "hi\n");
    CHECK(o.result()["report"] == "{\"x\":1}");
    CHECK(o.result()["interpreter"] == "cold");
    run["id"] = "e2";
    run["language"] = "built";
    CHECK(b.client.ask(run).out == "hi\n");
    CHECK_FALSE(std::filesystem::exists(b.agent.run() + "/e1"));
    run["id"] = "e3";
    run["language"] = "cobol";
    CHECK(b.client.ask(run).code() == "UNSUPPORTED");
    run["id"] = "../e4";
    CHECK(b.client.ask(run).code() == "BAD_REQUEST");
}
