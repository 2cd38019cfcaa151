#include <catch2/catch.hpp>

#include "tests/support/Support.h"
#include "tests/unit/pool/agent/program/Harness.h"

using namespace hearth::agent::program;
using hearth::Json;
using hearth::agent::FrameType;

namespace {

bool exists(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string id;
    std::string name;
    std::string state;
    return stat >> id >> name >> state && state != "Z";
}

Json withClaim(const char* claim) {
    return {{"op", "hello"}, {"protocol", 1}, {"kind", "data"}, {"epoch", 1}, {"claimId", claim}};
}

}  // namespace

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

TEST_CASE("a layer is found by everything that runs, and a request's own words still count",
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

TEST_CASE("what a GPU's driver needs is in every environment, whatever image and request say",
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

TEST_CASE("thread counts follow a bind that narrows the processors, and none that widens",
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

TEST_CASE("at the deadline every descendant is killed, however it hides",
          "[unit][agent][program]") {
    Bound b;
    Json run = exec("e",
                    "setsid sh -c 'sleep 300 & echo $! > one' & "
                    "(setsid setsid sh -c 'echo $$ > two; exec sleep 300' >/dev/null 2>&1 &) ; "
                    "sleep 300");
    run["timeoutMs"] = 400;
    Outcome o = b.client.ask(run);
    CHECK(o.result()["status"] == "timeout");
    CHECK(o.result()["signal"] == 9);
    for (const char* name : {"/one", "/two"}) {
        pid_t pid = 0;
        std::ifstream(b.agent.root() + name) >> pid;
        REQUIRE(pid > 0);
        CHECK_FALSE(exists(pid));
    }
}

TEST_CASE("a process whose first thread has ended is killed at the deadline all the same",
          "[unit][agent][program]") {
    Bound b;
    // The child of this program ends its first thread and lives on in a second one.
    std::ofstream(b.agent.root() + "/headless.cpp") << R"(
#include <pthread.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cstdio>
static void* stay(void*) {
    std::FILE* file = std::fopen("pid", "w");
    std::fprintf(file, "%d", getpid());
    std::fclose(file);
    for (;;) pause();
}
int main() {
    if (fork() != 0) for (;;) pause();
    setsid();
    for (int fd = 0; fd < 3; ++fd) close(fd);
    pthread_t thread;
    pthread_create(&thread, nullptr, stay, nullptr);
    syscall(SYS_exit, 0);
}
)";
    REQUIRE(std::system(("c++ -pthread -o " + b.agent.root() + "/headless " + b.agent.root() +
                         "/headless.cpp")
                            .c_str()) == 0);
    Json run = exec("e", "./headless");
    run["timeoutMs"] = 1'500;
    Outcome o = b.client.ask(run);
    CHECK(o.result()["status"] == "timeout");
    pid_t pid = 0;
    std::ifstream(b.agent.root() + "/pid") >> pid;
    REQUIRE(pid > 0);
    // The agent reaps it soon after. Only the kill matters here.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (kill(pid, 0) == 0 && std::chrono::steady_clock::now() < limit) {
        b.client.ask({{"op", "usage"}});
    }
    CHECK(kill(pid, 0) != 0);
}

TEST_CASE("the result comes with the exit, not with the pipes", "[unit][agent][program]") {
    Bound b;
    const auto begin = std::chrono::steady_clock::now();
    Outcome o = b.client.ask(exec("e", "sleep 30 & echo $! > pid; echo done"));
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(2));
    CHECK(o.out == "done\n");
    CHECK(o.result()["status"] == "ok");
    pid_t pid = 0;
    std::ifstream(b.agent.root() + "/pid") >> pid;
    CHECK(exists(pid));
    CHECK(b.client.ask({{"op", "forget"}, {"id", "e"}}).ok);
    CHECK(b.client.ask({{"op", "attach"}, {"id", "e"}, {"offset", 0}}).code() == "NOT_FOUND");
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

TEST_CASE("an execution's note is told to whoever comes back to it", "[unit][agent][program]") {
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

TEST_CASE("signals reach the process group, KILL every descendant", "[unit][agent][program]") {
    Bound b;
    auto s = b.client.request(
        exec("e1", "trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.05; done"));
    b.client.await(s, "ready");
    CHECK(b.client.ask({{"op", "signal"}, {"id", "e1"}, {"signal", "TERM"}}).ok);
    Outcome o = b.client.finish(s);
    CHECK(o.out.find("got") != std::string::npos);
    CHECK(o.result()["exitCode"] == 5);
    CHECK(b.client.ask({{"op", "signal"}, {"id", "e1"}, {"signal", 15}}).code() == "NOT_FOUND");

    s = b.client.request(exec("e2", "setsid sleep 300 & echo ready; sleep 300"));
    b.client.await(s, "ready");
    CHECK(b.client.ask({{"op", "signal"}, {"id", "e2"}, {"signal", 9}}).ok);
    o = b.client.finish(s);
    CHECK(o.result()["status"] == "killed");
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

TEST_CASE("the folder of a code takes files beside it and ends with its run",
          "[unit][agent][program]") {
    Bound b;
    Json run = {{"op", "exec"},
                {"id", "e1"},
                {"language", "shell"},
                {"code", "d=${0%/*}; mkdir $d/sub; echo x > $d/sub/x; echo here; cat $0"}};
    CHECK(b.client.ask(run).out == "here\n" + run["code"].get<std::string>());
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

TEST_CASE("a bus error is reported with the file systems that may be full",
          "[unit][agent][program]") {
    Bound b;
    const Outcome killed = b.client.ask(exec("e1", "kill -BUS $$"));
    CHECK(killed.result()["signal"] == 7);
    const Json report = hearth::parseJson(killed.result()["report"].get<std::string>());
    CHECK(report["name"] == "SIGBUS");
    CHECK(report["message"].get<std::string>().find("/dev/shm (") != std::string::npos);
    // A shell whose command was ended so says it by its status.
    CHECK(b.client.ask(exec("e2", "sh -c 'kill -BUS $$'; exit $?")).result().contains("report"));
    CHECK_FALSE(b.client.ask(exec("e3", "kill -SEGV $$")).result().contains("report"));
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
    CHECK_FALSE(std::filesystem::exists(b.agent.run() + "/e1"));
    run["id"] = "e2";
    run["language"] = "built";
    CHECK(b.client.ask(run).out == "hi\n");
    run["id"] = "e3";
    run["language"] = "cobol";
    CHECK(b.client.ask(run).code() == "UNSUPPORTED");
    run["id"] = "../e4";
    CHECK(b.client.ask(run).code() == "BAD_REQUEST");
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

TEST_CASE("an agent that leaves idleness to the server tells it and does not end",
          "[unit][agent][program]") {
    AgentProcess agent;
    Client client(agent.socket());
    Outcome greeted = client.ask(hello());
    CHECK(greeted.body["deadlines"]["idleEnds"] == true);
    Json bind = bindRequest();
    bind["deadlines"] = {{"expiresAtNs", 0}, {"idleTimeoutMs", 1}, {"idleEnds", false}};
    REQUIRE(client.ask(bind).ok);
    const Outcome set = client.ask({{"op", "deadlines"}, {"epoch", 1}, {"idleTimeoutMs", 2}});
    CHECK(set.body["idleEnds"] == false);
    CHECK(set.body["idleTimeoutMs"] == 2);
    // The end by the lifetime shows that the agent's deadlines are in force.
    const auto now = client.ask({{"op", "touch"}}).body["lastActivityNs"].get<std::int64_t>();
    const auto begin = std::chrono::steady_clock::now();
    CHECK(client.ask({{"op", "deadlines"}, {"epoch", 1}, {"expiresAtNs", now + 1'000'000'000}}).ok);
    CHECK(agent.waitForEnd(std::chrono::seconds(8)) == 0);
    CHECK(std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(2500));
}

TEST_CASE("an agent that nobody binds ends alone, and drain ends one at once",
          "[unit][agent][program]") {
    AgentProcess agent({"HEARTH_AGENT_ORPHAN_MS=100"});
    CHECK(agent.waitForEnd(std::chrono::seconds(5)) == 0);
    Bound b;
    const auto s = b.client.request(exec("e", "setsid sleep 300 & echo $!; sleep 300"));
    b.client.await(s, "\n");
    CHECK(b.client.ask({{"op", "drain"}, {"epoch", 1}}).ok);
    CHECK(b.agent.waitForEnd(std::chrono::seconds(5)) == 0);
}

TEST_CASE("an invalid filter beside the agent means that nothing is run",
          "[unit][agent][program]") {
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

TEST_CASE("executions that are over make room for new ones", "[unit][agent][program]") {
    Bound b;
    for (int i = 0; i < 70; ++i) {
        REQUIRE(b.client.ask(exec("e" + std::to_string(i), "true")).ok);
    }
    CHECK(b.client.ask({{"op", "attach"}, {"id", "e0"}, {"offset", 0}}).code() == "NOT_FOUND");
    CHECK(b.client.ask({{"op", "attach"}, {"id", "e69"}, {"offset", 0}}).ok);
    for (int i = 0; i < 32; ++i) {
        b.client.awaitNote(b.client.request(exec("r" + std::to_string(i), "sleep 300")));
    }
    CHECK(b.client.ask(exec("more", "true")).code() == "TOO_MANY");
}
