#include <catch2/catch.hpp>

#include "tests/unit/pool/agent/program/Harness.h"

using namespace hearth::agent::program;
using hearth::Json;
using hearth::agent::FrameType;

TEST_CASE("the agent says who it is and takes exactly one bind", "[unit][agent][program]") {
    AgentProcess agent;
    Client client(agent.socket());
    Outcome first = client.ask(hello(4));
    REQUIRE(first.ok);
    CHECK(first.body["sandbox"] == "sb_test");
    CHECK(first.body["bound"].is_null());
    CHECK(first.body["languages"].contains("shell"));
    CHECK(client.ask(exec("e", "true")).code() == "NOT_BOUND");
    CHECK(client.ask(bindRequest("c1", 3)).code() == "STALE_EPOCH");

    Outcome bound = client.ask(bindRequest("c1", 4));
    REQUIRE(bound.ok);
    CHECK(bound.body["repeated"] == false);
    Json again = bindRequest("c1", 4);
    again["attempt"] = 2;
    Outcome repeated = client.ask(again);
    CHECK(repeated.body["repeated"] == true);
    CHECK(repeated.body["attempt"] == 1);
    CHECK(repeated.body["boundAtNs"] == bound.body["boundAtNs"]);
    again["fingerprint"] = "other";
    CHECK(client.ask(again).code() == "FINGERPRINT_MISMATCH");
    Outcome held = client.ask(bindRequest("c2", 4));
    CHECK(held.code() == "BOUND_ELSEWHERE");
    CHECK(held.body["holder"]["claimId"] == "c1");

    Client stale(agent.socket());
    CHECK(stale.ask(hello(3)).code() == "STALE_EPOCH");
    Client newer(agent.socket());
    Outcome seen = newer.ask(hello(5));
    REQUIRE(seen.ok);
    CHECK(seen.body["bound"]["claimId"] == "c1");
    CHECK(seen.body["bound"]["labels"]["k"] == "v");
    CHECK(seen.body["bound"]["note"]["name"] == "n");
    CHECK(seen.body.dump().find("hush") == std::string::npos);
    Frame frame;
    CHECK_FALSE(client.next(frame));  // replaced by the newer one
    Client wrong(agent.socket());
    CHECK(wrong.ask(withClaim("c2")).code() == "BOUND_ELSEWHERE");
    Client data(agent.socket());
    CHECK(data.ask(withClaim("c1")).ok);
    CHECK(data.ask(exec("e", "true")).code() == "BAD_REQUEST");
}

TEST_CASE("every program finds the layer, and the variables of a request still win",
          "[unit][agent][program]") {
    Bound b(
        {"HEARTH_LAYER=/l", R"(HEARTH_IMAGE={"env":["PATH=/usr/bin:/bin","PYTHONPATH=/image"]})"});
    Json run = exec("e1", "echo $PATH $PYTHONPATH");
    CHECK(b.client.ask(run).out ==
          "/usr/bin:/bin:" + b.agent.root() + "/.local/bin:/l/bin /.hearth/site:/image\n");
    run["id"] = "e2";
    run["env"] = {{"PYTHONPATH", "/own"}};
    CHECK(b.client.ask(run).out.ends_with(" /own\n"));
    Bound without;
    CHECK(without.client.ask(exec("e3", "echo ${PYTHONPATH-none}")).out == "none\n");
}

TEST_CASE(
    "the variables of a GPU's driver are in every environment, whatever image and request set",
    "[unit][agent][program]") {
    Bound b({R"(HEARTH_GPU={"env":["NVIDIA_VISIBLE_DEVICES=void","LD_LIBRARY_PATH=/opt/gpu=1"]})",
             R"(HEARTH_IMAGE={"env":["NVIDIA_VISIBLE_DEVICES=all","KEPT=1"]})"});
    Json run = exec("e1", "echo $NVIDIA_VISIBLE_DEVICES $LD_LIBRARY_PATH $KEPT ${HEARTH_GPU-none}");
    CHECK(b.client.ask(run).out == "void /opt/gpu=1 1 none\n");
    run["id"] = "e2";
    run["env"] = {{"NVIDIA_VISIBLE_DEVICES", "all"}, {"LD_LIBRARY_PATH", "/own"}, {"KEPT", "2"}};
    CHECK(b.client.ask(run).out == "void /opt/gpu=1 2 none\n");
    Bound without({"HEARTH_GPU=no json"});
    CHECK(without.client.ask(exec("e3", "echo ${NVIDIA_VISIBLE_DEVICES-none}")).out == "none\n");
}

TEST_CASE("thread counts follow a bind that lowers the processors, and none that raises them",
          "[unit][agent][program]") {
    const auto threads = [](const Json& cpus) {
        AgentProcess agent;
        Client client(agent.socket());
        client.ask(hello());
        Json bind = bindRequest();
        bind["cpus"] = cpus;
        if (!client.ask(bind).ok) return std::string("refused");
        return client.ask(exec("e1", "echo $OMP_NUM_THREADS $MKL_NUM_THREADS")).out;
    };
    CHECK(threads(1) == "1 1\n");
    CHECK(threads(3) == "3 3\n");
    CHECK(threads(4) == "3 3\n");
    CHECK(threads(0) == "3 3\n");
    CHECK(threads("x") == "3 3\n");
}

TEST_CASE("a command runs as the tenant with the bound environment", "[unit][agent][program]") {
    Bound b;
    Json run = exec("e1", "echo $A-$B-$S-$OMP_NUM_THREADS; pwd; id -u; umask; echo no >&2; exit 3");
    run["env"] = {{"B", "2"}};
    Outcome o = b.client.ask(run);
    REQUIRE(o.ok);
    const std::string uid = geteuid() == 0 ? "1000" : std::to_string(geteuid());
    CHECK(o.out == "1-2-hush-3\n" + b.agent.root() + "\n" + uid + "\n0022\n");
    CHECK(o.err == "no\n");
    CHECK(o.result()["status"] == "failed");
    CHECK(o.result()["exitCode"] == 3);
    CHECK(o.result()["outputBytes"] == o.out.size() + o.err.size());

    Outcome again = b.client.ask(run);  // the same id is not run again
    CHECK(again.out == o.out);
    CHECK(again.note["started"]["repeated"] == true);
    run["fingerprint"] = "other";
    CHECK(b.client.ask(run).code() == "FINGERPRINT_MISMATCH");

    Json missing = {{"op", "exec"}, {"id", "e2"}, {"argv", {"no-such-program"}}};
    Outcome m = b.client.ask(missing);
    CHECK(m.result()["exitCode"] == 127);
    CHECK(m.err == "hearth: no-such-program: not found\n");
    Json denied = {{"op", "exec"}, {"id", "e3"}, {"argv", {"/etc/passwd"}}};
    CHECK(b.client.ask(denied).result()["exitCode"] == 126);
}

TEST_CASE("a tenant process has no privilege left and only its own descriptors",
          "[unit][agent][program]") {
    Bound b;
    Outcome o = b.client.ask(
        exec("e", "cat /proc/self/status; ls /proc/self/fd; cat /proc/self/oom_score_adj"));
    REQUIRE(o.ok);
    if (geteuid() == 0) {
        CHECK(o.out.find("CapEff:\t0000000000000000") != std::string::npos);
        CHECK(o.out.find("CapPrm:\t0000000000000000") != std::string::npos);
        CHECK(o.out.find("CapInh:\t0000000000000000") != std::string::npos);
        CHECK(o.out.find("CapAmb:\t0000000000000000") != std::string::npos);
    }
    CHECK(o.out.find("NoNewPrivs:\t1") != std::string::npos);
    CHECK(o.out.find("SigBlk:\t0000000000000000") != std::string::npos);
    CHECK(o.out.find("SigIgn:\t0000000000000000") != std::string::npos);
    CHECK(o.out.find("\n0\n1\n2\n3\n1000") != std::string::npos);  // 3 is the listed directory
}

TEST_CASE("malformed frames cost the connection, not the agent", "[unit][agent][program]") {
    Bound b;
    for (const std::string& bytes : {std::string(12, '\xff'), std::string("GET / HTTP/1.1\r\n\r\n"),
                                     std::string("\x02\0\0\0\x00\0\0\0\x01\0\0\0{}", 14)}) {
        Client bad(b.agent.socket());
        bad.raw(bytes);
        Frame f;
        CHECK_FALSE(bad.next(f));
    }
    Client text(b.agent.socket());
    text.send(FrameType::Request, 1, std::string(1000, '['));
    Outcome o = text.finish(1);
    CHECK(o.code() == "BAD_REQUEST");
    Client early(b.agent.socket());
    CHECK(early.ask({{"op", "exec"}}).code() == "BAD_REQUEST");
    CHECK(b.client.ask({{"op", "dial"}}).code() == "UNSUPPORTED");
    CHECK(b.client.ask(exec("e", "echo ok")).out == "ok\n");
}

TEST_CASE("the lifetime and idleness end the agent two seconds later", "[unit][agent][program]") {
    Bound b;
    const auto now = b.client.ask({{"op", "touch"}}).body["lastActivityNs"].get<std::int64_t>();
    const auto s = b.client.request(exec("e", "sleep 300 & echo $!; wait"));
    b.client.await(s, "\n");
    Outcome set = b.client.ask({{"op", "deadlines"}, {"epoch", 1}, {"idleTimeoutMs", 1}});
    CHECK(set.body["idleAtNs"] == 0);  // something runs
    CHECK(b.client.ask({{"op", "deadlines"}, {"epoch", 1}, {"expiresAtNs", now + 100'000'000}}).ok);
    CHECK(b.agent.waitForEnd(std::chrono::seconds(6)) == 0);

    Bound idle;
    CHECK(idle.client.ask({{"op", "deadlines"}, {"epoch", 1}, {"idleTimeoutMs", 50}}).ok);
    CHECK(idle.agent.waitForEnd(std::chrono::seconds(6)) == 0);
}

TEST_CASE("an agent that leaves idleness to the server does not end", "[unit][agent][program]") {
    AgentProcess agent;
    Client client(agent.socket());
    REQUIRE(client.ask(hello()).ok);
    Json bind = bindRequest();
    bind["deadlines"] = {{"expiresAtNs", 0}, {"idleTimeoutMs", 1}, {"idleEnds", false}};
    REQUIRE(client.ask(bind).ok);
    const Outcome set = client.ask({{"op", "deadlines"}, {"epoch", 1}, {"idleTimeoutMs", 2}});
    CHECK(set.body["idleTimeoutMs"] == 2);
    // The end by the lifetime shows that the agent's deadlines are in force.
    const auto now = client.ask({{"op", "touch"}}).body["lastActivityNs"].get<std::int64_t>();
    const auto begin = std::chrono::steady_clock::now();
    CHECK(client.ask({{"op", "deadlines"}, {"epoch", 1}, {"expiresAtNs", now + 1'000'000'000}}).ok);
    CHECK(agent.waitForEnd(std::chrono::seconds(8)) == 0);
    CHECK(std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(2500));
}

TEST_CASE("an agent without a bind ends by itself, and a drain ends it at once",
          "[unit][agent][program]") {
    AgentProcess agent({"HEARTH_AGENT_ORPHAN_MS=100"});
    CHECK(agent.waitForEnd(std::chrono::seconds(5)) == 0);
    Bound b;
    const auto s = b.client.request(exec("e", "setsid sleep 300 & echo $!; sleep 300"));
    b.client.await(s, "\n");
    CHECK(b.client.ask({{"op", "drain"}, {"epoch", 1}}).ok);
    CHECK(b.agent.waitForEnd(std::chrono::seconds(5)) == 0);
}

TEST_CASE("an agent with an invalid filter file runs no program", "[unit][agent][program]") {
    char name[] = "/tmp/hearth-agent-test-XXXXXX";
    const std::string dir = mkdtemp(name);
    std::filesystem::copy_file(HEARTH_AGENT_PATH, dir + "/hearth-agent");
    for (const std::string& filter :
         {std::string("bad"), std::string("\x06\0\0\0\0\0\xff\x7f", 8)}) {
        std::ofstream(dir + "/tenant.bpf", std::ios::binary | std::ios::trunc) << filter;
        AgentProcess agent({}, dir + "/hearth-agent");
        Client client(agent.socket());
        client.ask(hello());
        REQUIRE(client.ask(bindRequest()).ok);
        Outcome o = client.ask(exec("e", "grep Seccomp: /proc/self/status"));
        if (filter.size() == 8) {
            CHECK(o.out == "Seccomp:\t2\n");
        } else {
            CHECK(o.code() == "SPAWN_FAILED");
        }
    }
    std::filesystem::remove_all(dir);
}

TEST_CASE("before bind only a prewarm command runs, and afterwards none",
          "[unit][agent][program]") {
    AgentProcess agent;
    Client client(agent.socket());
    client.ask(hello());
    Json warm = exec("w", "echo warm-$A");
    warm["prewarm"] = true;
    CHECK(client.ask(warm).out == "warm-\n");
    REQUIRE(client.ask(bindRequest()).ok);
    warm["id"] = "w2";
    CHECK(client.ask(warm).code() == "BAD_REQUEST");
}
