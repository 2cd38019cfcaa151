#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/pool/agent/program/Harness.h"

using namespace hearth;
using namespace hearth::agent;
using namespace hearth::agent::program;

namespace {

/// A bound agent that keeps shells parked.
struct Shells {
    explicit Shells(std::vector<std::string> environment = {}, const Json& bind = bindRequest())
        : agent(std::move(environment)), client(agent.socket()) {
        client.ask(hello());
        prewarmed = client.ask({{"op", "prewarm"},
                                {"languages", {{"sh", {{"imports", Json::array()}}}}},
                                {"waitMs", 20'000}});
        if (!client.ask(bind).ok) throw std::runtime_error("bind");
    }
    Json body(const std::string& command) { return exec("e" + std::to_string(++count), command); }
    Outcome run(const std::string& command) { return client.ask(body(command)); }
    /// Runs until a parked shell takes it: one may not be ready at once, and the other runs take
    /// long enough for one to become ready.
    Outcome parkedAs(const Json& like) {
        for (int i = 0; i < 200; ++i) {
            Json again = like;
            again["id"] = "p" + std::to_string(++count);
            Outcome o = client.ask(again);
            if (o.result().value("interpreter", "") == "parked") return o;
        }
        throw std::runtime_error("no parked shell");
    }
    Outcome parked(const std::string& command) { return parkedAs(body(command)); }
    Outcome spawned(const std::string& command) {
        Json plain = body(command);
        plain.erase("command");
        plain["argv"] = {"/bin/sh", "-c", command};
        return client.ask(plain);
    }
    AgentProcess agent;
    Client client;
    Outcome prewarmed;
    int count = 0;
};

std::string told(const Outcome& o) {
    const Json r = o.result();
    return r["status"].get<std::string>() + " " + r["exitCode"].dump() + " " + r["signal"].dump() +
           "\n--- out\n" + o.out + "--- err\n" + o.err;
}

/// Returns a command that sends the signal to all waiting shells, but not to its own shell.
std::string toParked(const std::string& signal) {
    return "for p in /proc/[0-9]*; do "
           "if tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -q '^/bin/sh -i +m -c hearth' "
           "&& [ ${p#/proc/} != $$ ] && [ \"$(sed -n 's/^PPid:.//p' $p/status)\" = $PPID ]; "
           "then kill -" +
           signal + " ${p#/proc/}; fi; done";
}

}  // namespace

TEST_CASE("prewarm answers when a shell waits, and the first command finds it",
          "[unit][agent][program]") {
    Shells s;
    CHECK(s.prewarmed.body["ready"] == Json::array({"sh"}));
    CHECK(s.prewarmed.body["failed"].empty());
    const Outcome o = s.run("echo hi; echo ho >&2");
    CHECK(o.out == "hi\n");
    CHECK(o.err == "ho\n");
    CHECK(o.result()["status"] == "ok");
    CHECK(o.result()["interpreter"] == "parked");
    CHECK(o.note["started"]["interpreter"] == "parked");
}

TEST_CASE("without a prewarm no shell is parked, and a command tells nothing of it",
          "[unit][agent][program]") {
    Bound b;
    for (const char* id : {"a", "b", "c"}) {
        CHECK(b.client.ask(exec(id, "echo hi")).result()["interpreter"] == "");
    }
}

TEST_CASE("a parked shell runs a command as /bin/sh -c does", "[unit][agent][program]") {
    Shells s;
    const std::string long_text(20'000, 'x');
    for (const std::string& command : std::vector<std::string>{
             "echo hi",
             "echo $0 $# \"$-\" \"$@\"",
             "nosuch",
             "\n\nnosuch\necho $LINENO\n",
             "echo a \\\n b; nosuch",
             "",
             "   ",
             "\n",
             "# a comment",
             "exit 7",
             "return 5; echo after",
             "false",
             "! true",
             "true; sh -c 'exit 3'",
             "set -e\nfalse\necho after",
             "set -u; echo $nope; echo after",
             "set -x; echo hi",
             "set -v\necho hi",
             "echo ${x?bad}; echo after",
             "readonly a=1; a=2; echo after",
             "echo $((1/0))",
             ";",
             "&& true",
             "& true",
             "echo 'unfinished",
             "if true; then",
             "echo )",
             "eval 'echo ('; echo after",
             ". /nonexistent/file; echo after",
             "exec 5</nonexistent; echo after",
             "cat <<E\na $0 `echo b`\nE\necho $LINENO",
             "cat <<'E' | tr a b\n$x aaa\nE",
             "cat; echo $?",
             "read x; echo $?",
             "trap 'echo bye' EXIT; exit 3",
             "trap 'echo caught' TERM; kill $$; echo after",
             "trap",
             "kill -9 $$",
             "kill -INT $$; echo after",
             "sh -c 'kill -9 $$'",
             "sh -c 'kill -9 $$'; echo $?",
             "if true; then sh -c 'kill -TERM $$'; fi",
             "(sh -c 'kill -9 $$')",
             "{ sh -c 'kill -9 $$'; } 2>/dev/null",
             "exec sh -c 'echo $PPID' >/dev/null",
             "exec echo hi",
             "f() { echo f $1 $LINENO; return 4; }\nf x",
             "local x; echo after",
             "alias; alias hearth; unalias hearth; hearth",
             "alias x='echo al'\nx",
             "(sleep 0.01; echo late) & wait $!; echo $?",
             "jobs; sleep 0.01 & wait; echo $?",
             "wait 99999; echo $?",
             "sleep 0.05 | cat; echo $?",
             "for i in 1 2; do echo $i; done | cat",
             "case a in a) echo $LINENO;; esac",
             "getopts ab x -a; echo $x $OPTIND",
             "shift; echo $?",
             "cd /; pwd; echo $OLDPWD | grep -c root",
             "pwd; umask; ulimit -a",
             "set -o",
             "set | grep -v '^PPID='",
             "env | sort",
             "export | sort",
             "grep '^SigIgn\\|^SigCgt' /proc/$$/status",
             "for f in 3 4 5 9 10 11; do [ -e /proc/$$/fd/$f ] && echo $f; done; echo x >&3",
             "ls /proc/self/fd | wc -l",
             "set -- $(cat /proc/$$/stat); [ $5 = $$ ] && [ $6 = $$ ] && echo leader ${18} ${19}",
             "printf '\\201\\210\\377' | od -c; echo '\xc3\xa9\xe2\x82\xac'",
             "echo \"it's\" 'a \"b\" \\ $c'",
             "echo `echo a \\`echo b\\``",
             "echo " + long_text,
             "yes | head -n 20000 | wc -l",
         }) {
        INFO(command.substr(0, 200));
        CHECK(told(s.parked(command)) == told(s.spawned(command)));
    }
}

TEST_CASE("a parked shell differs from a spawned one only by arguments and first environment",
          "[unit][agent][program]") {
    Shells s;
    CHECK(s.parked("tr '\\0' ' ' < /proc/$$/cmdline").out == "/bin/sh -i +m -c hearth ");
    CHECK(s.spawned("tr '\\0' ' ' < /proc/$$/cmdline; :").out.rfind("/bin/sh -c ", 0) == 0);
    CHECK(s.parked("tr '\\0' '\\n' < /proc/$$/environ | grep ^ENV=").out ==
          "ENV=/proc/self/fd/3\n");
}

TEST_CASE("a command in a parked shell has the variables of its bind and of its request",
          "[unit][agent][program]") {
    Json bind = bindRequest();
    bind["env"]["QUOTED"] = "it's\n\\x $HOME `x` \"q\" \xc3\xa9";
    bind["env"]["_"] = "underscore";
    bind["env"]["ENV"] = "/nonexistent";
    bind["env"]["PATH"] = "/usr/bin:/bin";
    Shells s({}, bind);
    const std::string show = "env | sort; set | grep -v ^PPID; printf %s \"$QUOTED\" | od -c";
    // The first shell was parked before the bind, later ones after it.
    const Outcome first = s.run(show);
    CHECK(first.result()["interpreter"] == "parked");
    CHECK(first.out.find("S=hush\n") != std::string::npos);
    CHECK(told(first) == told(s.spawned(show)));
    for (int i = 0; i < 4; ++i) CHECK(told(s.parked(show)) == told(first));

    Json asked = s.body("echo $A $B $NEW; env | grep -c '^NEW=1 2$'");
    asked["env"] = {{"A", "over"}, {"NEW", "1 2"}, {"PS", "x"}};
    CHECK(s.parkedAs(asked).out == "over 1 1 2\n1\n");
    CHECK(s.parked("echo $A$NEW").out == "1\n");
}

TEST_CASE("parked shells that cannot take the bind's variables are replaced",
          "[unit][agent][program]") {
    Json bind = bindRequest();
    bind["env"]["LANG"] = "C";
    Shells s({}, bind);
    const Outcome first = s.run("echo $LANG");
    CHECK(first.out == "C\n");
    CHECK(first.result()["interpreter"] == "");
    CHECK(s.parked("echo $LANG").out == "C\n");
}

TEST_CASE("a command that a parked shell could not run exactly is spawned",
          "[unit][agent][program]") {
    Shells s;
    std::vector<Json> bodies;
    for (const char* name : {"LD_LIBRARY_PATH", "LC_ALL", "LANG", "MALLOC_ARENA_MAX", "PWD",
                             "OLDPWD", "IFS", "PPID", "OPTIND", "PS4", "LINENO", "not-a-name"}) {
        bodies.push_back(s.body("true"));
        bodies.back()["env"] = {{name, "2"}};
    }
    bodies.push_back(s.body("true"));
    bodies.back()["cwd"] = "/tmp";
    bodies.push_back(s.body("true"));
    bodies.back()["pty"] = {{"cols", 80}, {"rows", 24}};
    bodies.push_back(s.body("true # " + std::string(61'440, 'x')));
    bodies.push_back(s.body("true # " + std::string(20'000, '\'')));
    for (const Json& body : bodies) {
        INFO(body.dump().substr(0, 200));
        REQUIRE(s.parked("true").ok);
        const Outcome o = s.client.ask(body);
        CHECK(o.result()["status"] == "ok");
        CHECK(o.result()["interpreter"] == "");
    }
    Json fed = s.body("cat");
    fed["stdin"] = true;
    const auto stream = s.client.request(fed);
    s.client.send(FrameType::Data, stream, "fed");
    s.client.send(FrameType::End, stream, "");
    const Outcome o = s.client.finish(stream);
    CHECK(o.out == "fed");
    CHECK(o.result()["interpreter"] == "");
    CHECK(s.spawned("true").result()["interpreter"] == "");
}

TEST_CASE("a long command reaches its parked shell whole", "[unit][agent][program]") {
    Shells s;
    const std::string text(50'000, 'y');
    CHECK(s.parked("echo " + text + " | wc -c").out == "50001\n");
}

TEST_CASE("parked shells that are killed cost no run and are replaced", "[unit][agent][program]") {
    Shells s;
    for (int i = 0; i < 3; ++i) {
        CHECK(s.parked(toParked("KILL") + "; echo done").out == "done\n");
        const Outcome o = s.run("echo next");
        CHECK(o.out == "next\n");
        CHECK(o.result()["status"] == "ok");
    }
    CHECK(s.parked("echo again").out == "again\n");
}

TEST_CASE("a parked shell that is stopped loses its command to one that is spawned",
          "[unit][agent][program]") {
    Shells s;
    CHECK(s.parked(toParked("STOP") + "; echo done").out == "done\n");
    const Outcome o = s.run("echo once >> ran; cat ran");
    CHECK(o.out == "once\n");
    CHECK(o.result()["status"] == "ok");
    CHECK(o.note["started"]["interpreter"] == "parked");
    CHECK(o.result()["interpreter"] == "");
}

TEST_CASE("a command that is killed before its stopped shell has read it never runs",
          "[unit][agent][program]") {
    Shells s;
    CHECK(s.parked(toParked("STOP") + "; echo done").out == "done\n");
    const Json body = s.body("echo once > ran; sleep 300");
    const auto stream = s.client.request(body);
    s.client.ask({{"op", "signal"}, {"id", body["id"]}, {"signal", "KILL"}});
    CHECK(s.client.finish(stream).result()["status"] == "killed");
    CHECK_FALSE(std::filesystem::exists(s.agent.root() + "/ran"));
}

TEST_CASE("a deadline and a kill reach all that a parked shell has started",
          "[unit][agent][program]") {
    Shells s;
    Json body = s.body(
        "setsid sh -c 'echo $$ > one; exec sleep 300' & (trap '' TERM; sleep 300) & sleep 300");
    body["timeoutMs"] = 400;
    Outcome o = s.parkedAs(body);
    CHECK(o.result()["status"] == "timeout");
    CHECK(o.result()["signal"] == SIGKILL);
    pid_t left = 0;
    std::ifstream(s.agent.root() + "/one") >> left;
    REQUIRE(left > 0);
    const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, left, 0)));
    pollfd ended{process.get(), POLLIN, 0};
    CHECK((!process || ::poll(&ended, 1, 5'000) == 1));
    body = s.body("echo on; sleep 300");
    const auto stream = s.client.request(body);
    s.client.await(stream, "on");
    CHECK(s.client.ask({{"op", "signal"}, {"id", body["id"]}, {"signal", "TERM"}}).ok);
    o = s.client.finish(stream);
    CHECK(o.result()["status"] == "killed");
    CHECK(o.result()["signal"] == SIGTERM);
}

TEST_CASE("a process that holds the output of a parked shell's command does not delay its end",
          "[unit][agent][program]") {
    Shells s;
    const Outcome o = s.parked("sleep 300 & echo hi");
    CHECK(o.out == "hi\n");
    CHECK(o.result()["status"] == "ok");
}

TEST_CASE("commands in a burst are all run, parked or not", "[unit][agent][program]") {
    Shells s;
    std::vector<std::uint32_t> streams;
    for (int i = 0; i < 12; ++i) {
        streams.push_back(s.client.request(s.body("echo " + std::to_string(i))));
    }
    for (std::size_t i = 0; i < streams.size(); ++i) {
        CHECK(s.client.finish(streams[i]).out == std::to_string(i) + "\n");
    }
}
