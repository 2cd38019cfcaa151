#include <catch2/catch.hpp>

#include "tests/unit/pool/agent/program/Harness.h"

using namespace hearth::agent::program;
using hearth::Json;

namespace {

bool exists(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string id;
    std::string name;
    std::string state;
    return stat >> id >> name >> state && state != "Z";
}

}  // namespace

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

TEST_CASE("the result comes at the exit of the process, not at the end of its pipes",
          "[unit][agent][program]") {
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
