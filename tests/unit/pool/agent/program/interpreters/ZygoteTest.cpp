#include <catch2/catch.hpp>
#include <set>

#include "tests/support/Support.h"
#include "tests/unit/pool/agent/program/Harness.h"

using namespace hearth;
using namespace hearth::agent;
using namespace hearth::agent::program;

namespace {

/// A bound agent whose Python is warm.
struct Warm {
    explicit Warm(const Json& imports = Json::array(), int cpus = 0) : client(agent.socket()) {
        client.ask(hello());
        prewarmed = client.ask({{"op", "prewarm"},
                                {"languages", {{"python", {{"imports", imports}}}}},
                                {"waitMs", 20'000}});
        Json bind = bindRequest();
        if (cpus > 0) bind["cpus"] = cpus;
        if (!client.ask(bind).ok) throw std::runtime_error("bind");
    }
    Json code(const std::string& text) {
        return {{"op", "exec"},         {"id", "e" + std::to_string(++count)},
                {"language", "python"}, {"code", text},
                {"timeoutMs", 20'000},  {"outputLimit", 65'536}};
    }
    Outcome run(const std::string& text) { return client.ask(code(text)); }
    Outcome in(const std::string& context, const std::string& text) {
        Json body = code(text);
        body["context"] = context;
        return client.ask(body);
    }
    /// Runs until a zygote's child takes it: one may not be ready at once, and a cold run takes
    /// long enough for one to become ready.
    Outcome fresh(const std::string& text) {
        for (int i = 0; i < 200; ++i) {
            Outcome o = run(text);
            if (o.result().value("interpreter", "") == "zygote") return o;
        }
        throw std::runtime_error("no zygote");
    }
    AgentProcess agent;
    Client client;
    Outcome prewarmed;
    int count = 0;
};

}  // namespace

TEST_CASE("prewarm answers when the interpreter waits, and the first run finds it",
          "[unit][agent][program]") {
    Warm w;
    CHECK(w.prewarmed.body["ready"] == Json::array({"python"}));
    CHECK(w.prewarmed.body["failed"].empty());
    const Outcome o = w.run("print(1)");
    CHECK(o.out == "1\n");
    CHECK(o.err.empty());
    CHECK(o.result()["status"] == "ok");
    CHECK(o.result()["interpreter"] == "zygote");
    CHECK(o.note["started"]["interpreter"] == "zygote");
}

TEST_CASE("a bind that lowers the processors keeps a zygote warm, but not one with imports",
          "[unit][agent][program]") {
    const std::string threads = "import os; print(os.environ['OMP_NUM_THREADS'])";
    Warm plain(Json::array(), 1);
    CHECK(plain.fresh(threads).out == "1\n");
    // With a number in the request, the interpreter is a cold one that began with this number.
    Json own = plain.code(threads);
    own["env"] = {{"OMP_NUM_THREADS", "2"}};
    const Outcome cold = plain.client.ask(own);
    CHECK(cold.out == "2\n");
    CHECK(cold.result()["interpreter"] == "cold");
    // An imported module may have read the old number.
    Warm loaded(Json::array({"json"}), 1);
    const Outcome o = loaded.run(threads);
    CHECK(o.out == "1\n");
    CHECK(o.result()["interpreter"] == "cold");
    Warm same(Json::array({"json"}), 3);
    CHECK(same.fresh(threads).out == "3\n");
}

TEST_CASE("prewarm says which module cannot be imported, and refuses what is no module",
          "[unit][agent][program]") {
    Warm w(Json::array({"json", "no_such_module"}));
    CHECK(w.prewarmed.body["ready"] == Json::array({"python"}));
    CHECK(w.prewarmed.body["failed"]["python"].get<std::string>().find("no_such_module") !=
          std::string::npos);
    CHECK(w.fresh("import sys; print('json' in sys.modules)").out == "True\n");
    AgentProcess agent;
    Client client(agent.socket());
    client.ask(hello());
    CHECK(client
              .ask({{"op", "prewarm"},
                    {"languages", {{"python", {{"imports", {"--help"}}}}}},
                    {"waitMs", 1}})
              .code() == "BAD_REQUEST");
}

TEST_CASE("every run of a zygote is a fresh interpreter", "[unit][agent][program]") {
    Warm w;
    CHECK(w.fresh("import json, os; x = 1; json.y = 2; os.environ['Z'] = '1'; os.chdir('/')").ok);
    const Outcome o = w.fresh(
        "import json, os, random; print('x' in globals(), hasattr(json, 'y'), os.environ.get('Z'), "
        "os.getcwd(), os.getpid() == os.getpgrp())\nprint(random.random())");
    CHECK(o.out.rfind("False False None " + w.agent.root() + " True", 0) == 0);
    CHECK(o.out != w.fresh("import json, os, random; print('x' in globals(), hasattr(json, 'y'), "
                           "os.environ.get('Z'), os.getcwd(), os.getpid() == "
                           "os.getpgrp())\nprint(random.random())")
                       .out);
}

TEST_CASE("exit codes, signals and uncaught exceptions are those of an interpreter",
          "[unit][agent][program]") {
    Warm w;
    CHECK(w.fresh("raise SystemExit(7)").result()["exitCode"] == 7);
    Outcome o = w.fresh("import sys; sys.exit('bad')");
    CHECK(o.result()["exitCode"] == 1);
    CHECK(o.err == "bad\n");
    o = w.fresh("def f():\n    return 1 / 0\nf()");
    CHECK(o.result()["status"] == "failed");
    CHECK(o.err.find("line 2, in f") != std::string::npos);
    CHECK(o.err.find("hearth") == std::string::npos);
    const Json report = parseJson(o.result()["report"].get<std::string>());
    CHECK(report["name"] == "ZeroDivisionError");
    o = w.fresh("import os; os.kill(os.getpid(), 9)");
    CHECK(o.result()["status"] == "killed");
    CHECK(o.result()["signal"] == 9);
    o = w.fresh("import os; print('a', flush=True); os._exit(3)");
    CHECK(o.out == "a\n");
    CHECK(o.result()["exitCode"] == 3);
    o = w.fresh("raise KeyboardInterrupt");
    CHECK(o.result()["signal"] == 2);
}

TEST_CASE("exit handlers, threads and open files of a program end as in an interpreter",
          "[unit][agent][program]") {
    Warm w;
    const Outcome o = w.fresh(
        "import atexit, threading, time\n"
        "atexit.register(print, 'at exit')\n"
        "f = open('left.txt', 'w'); f.write('x')\n"
        "class C:\n    def __del__(self): print('deleted')\n"
        "c = C(); c.c = c\n"
        "threading.Thread(target=lambda: (time.sleep(0.05), print('thread'))).start()");
    CHECK(o.out == "thread\nat exit\ndeleted\n");
    std::ifstream left(w.agent.root() + "/left.txt");
    CHECK(left.get() == 'x');
}

TEST_CASE("values shown by code are results, in the order of the output",
          "[unit][agent][program]") {
    Warm w;
    Outcome o = w.fresh("print('before')\n{'a': [1, None]}");
    CHECK(o.out == "before\n");
    REQUIRE(o.shown().size() == 1);
    CHECK(o.shown()[0]["main"] == true);
    CHECK(o.shown()[0]["mime"]["text/plain"] == "{'a': [1, None]}");
    CHECK(o.shown()[0]["mime"]["application/json"] == Json{{"a", {1, nullptr}}});
    CHECK(o.result()["resultBytes"] == o.results.size());
    CHECK(w.fresh("x = 5").shown().empty());
    CHECK(w.fresh("None").shown().empty());
    o = w.fresh("class T:\n    def _repr_html_(self): return '<b>t</b>'\nT()");
    REQUIRE(o.shown().size() == 1);
    CHECK(o.shown()[0]["mime"]["text/html"] == "<b>t</b>");
    o = w.fresh("from __future__ import annotations\n'é' * 3");
    REQUIRE(o.shown().size() == 1);
    CHECK(o.shown()[0]["mime"]["text/plain"] == "'ééé'");
}

TEST_CASE("variables that act at an interpreter's start make a run cold",
          "[unit][agent][program]") {
    Warm w;
    Json body = w.code("import os; print(os.environ['A'])");
    body["env"] = {{"A", "1"}};
    Outcome o = w.client.ask(body);
    CHECK(o.out == "1\n");
    CHECK(o.result()["interpreter"] == "zygote");
    body = w.code("import sys; print(sys.flags.optimize)");
    body["env"] = {{"PYTHONOPTIMIZE", "1"}};
    o = w.client.ask(body);
    CHECK(o.out == "1\n");
    CHECK(o.result()["interpreter"] == "cold");
    CHECK(w.run(std::string("s = '\0'", 7)).result()["interpreter"] == "cold");
}

TEST_CASE("standard input, working directory and file name reach a zygote's child",
          "[unit][agent][program]") {
    Warm w;
    Json body = w.code("import sys; print(sys.stdin.read())");
    body["stdin"] = true;
    const auto s = w.client.request(body);
    w.client.send(FrameType::Data, s, "hallo");
    w.client.send(FrameType::End, s, "");
    Outcome o = w.client.finish(s);
    CHECK(o.out == "hallo\n");
    CHECK(o.result()["interpreter"] == "zygote");
    CHECK(w.fresh("import sys; print(repr(sys.stdin.read()))").out == "''\n");
    o = w.fresh("open('/dev/stdout', 'w').write(repr(open('/dev/stdin').read()))");
    CHECK(o.out == "''");
    CHECK(w.fresh("import os; print(os.path.isfile(__file__))").out == "True\n");
    body = w.code("1");
    body["cwd"] = "nowhere";
    o = w.client.ask(body);
    CHECK(o.result()["exitCode"] == 126);
    CHECK(o.err.find("nowhere: not found") != std::string::npos);
}

TEST_CASE("a run's file holds its code, whatever the last run did beside it",
          "[unit][agent][program]") {
    Warm w;
    const std::string look = "print(open(__file__).read().startswith('print(open(__file__)'))";
    CHECK(w.fresh(look).out == "True\n");
    for (const char* act : {"os.unlink(p)", "os.unlink(p); open(p, 'w').write('other')",
                            "os.unlink(p); os.symlink('/etc/hostname', p)"}) {
        const Outcome o = w.fresh(std::string("import glob, os\n"
                                              "for p in glob.glob(os.path.dirname(__file__) + "
                                              "'/../*/main.py'):\n  ") +
                                  act);
        CHECK(o.err.empty());
        const Outcome next = w.fresh(look);
        CHECK(next.out == "True\n");
        CHECK(next.result()["interpreter"] == "zygote");
    }
    CHECK(w.fresh("import os; print(len(os.listdir(os.path.dirname(__file__))))").out == "1\n");
}

TEST_CASE("the deadline and KILL reach what a zygote's child has started",
          "[unit][agent][program]") {
    Warm w;
    Json body = w.code(
        "import subprocess, time; p = subprocess.Popen(['setsid', 'sleep', '300']); "
        "print(p.pid, flush=True); time.sleep(300)");
    body["timeoutMs"] = 500;
    const Outcome o = w.client.ask(body);
    CHECK(o.result()["interpreter"] == "zygote");
    CHECK(o.result()["status"] == "timeout");
    const int pid = std::stoi(o.out);
    std::ifstream status("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(status, text);
    CHECK((text.empty() || text.find(") Z ") != std::string::npos));  // gone, or a zombie
}

TEST_CASE("a killed zygote starts again, and runs are cold meanwhile", "[unit][agent][program]") {
    Warm w;
    // The tenant's rights reach the zygote outside a sandbox as they do inside.
    const Outcome killed = w.fresh("import os; os.kill(os.getppid(), 9); print('done')");
    CHECK(killed.out == "done\n");
    CHECK(killed.result()["status"] == "ok");
    CHECK(w.run("print(2)").out == "2\n");
    CHECK(w.fresh("print(3)").out == "3\n");
}

TEST_CASE("each run of a burst gets a new child of its own", "[unit][agent][program]") {
    Warm w;
    std::vector<std::uint32_t> streams;
    for (int i = 0; i < 12; ++i) {
        streams.push_back(w.client.request(w.code("import os; print(os.getpid())")));
    }
    std::set<std::string> pids;
    for (const std::uint32_t stream : streams) {
        const Outcome o = w.client.finish(stream);
        CHECK(o.result()["interpreter"] == "zygote");
        CHECK(o.result()["status"] == "ok");
        pids.insert(o.out);
    }
    CHECK(pids.size() == 12);
    CHECK(w.run("print(5)").result()["interpreter"] == "zygote");
}

TEST_CASE("a run that is killed before its interpreter is forked never starts",
          "[unit][agent][program]") {
    Warm w;
    std::vector<std::pair<std::uint32_t, Json>> started;
    for (int i = 0; i < 8; ++i) {
        const Json body = w.code("import time; open('ran" + std::to_string(i) +
                                 "', 'w').close(); time.sleep(300)");
        started.emplace_back(w.client.request(body), body);
        w.client.ask({{"op", "signal"}, {"id", body["id"]}, {"signal", "KILL"}});
    }
    for (const auto& [stream, body] : started) {
        CHECK(w.client.finish(stream).result()["status"] == "killed");
    }
    CHECK(w.run("print(6)").out == "6\n");
}

TEST_CASE("a stopped child is given up, and its run is done cold", "[unit][agent][program]") {
    Warm w;
    // Stops every parked child: the zygote is their parent, too.
    const Outcome o = w.fresh(
        "import os\n"
        "for p in os.listdir('/proc'):\n"
        "    if p.isdigit() and int(p) != os.getpid():\n"
        "        try:\n"
        "            s = open(f'/proc/{p}/stat').read().rsplit(')', 1)[1].split()\n"
        "        except OSError: continue\n"
        "        if int(s[1]) == os.getppid(): os.kill(int(p), 19); print('stopped')");
    CHECK(o.out.find("stopped") != std::string::npos);
    const Outcome after = w.run("print(4)");
    CHECK(after.out == "4\n");
    CHECK(after.result()["interpreter"] == "cold");
}

TEST_CASE("a context keeps its variables, and restart empties it", "[unit][agent][program]") {
    Warm w;
    const Json make = {{"op", "context"}, {"id", "c"}, {"language", "python"}};
    CHECK(w.client.ask(make).body["repeated"] == false);
    CHECK(w.client.ask(make).body["repeated"] == true);
    CHECK(w.in("c", "x = 41\ndef f(): return x + 1").ok);
    Outcome o = w.in("c", "print('p')\nf()");
    CHECK(o.out == "p\n");
    CHECK(o.shown().at(0)["mime"]["text/plain"] == "42");
    CHECK(o.result()["interpreter"] == "context");
    CHECK(o.result()["contextKept"] == true);
    o = w.in("c", "f(1)");
    CHECK(o.result()["status"] == "failed");
    CHECK(o.err.find("cell 3") != std::string::npos);
    CHECK(w.in("c", "f()").result()["status"] == "ok");
    CHECK(w.client.ask({{"op", "contextRestart"}, {"id", "c"}}).ok);
    CHECK(w.in("c", "f()").result()["status"] == "failed");
    CHECK(w.client.ask({{"op", "contextEnd"}, {"id", "c"}}).ok);
    CHECK(w.in("c", "1").code() == "NOT_FOUND");
}

TEST_CASE("an interrupt and a deadline stop the code of a context and keep its state",
          "[unit][agent][program]") {
    Warm w;
    REQUIRE(w.client.ask({{"op", "context"}, {"id", "c"}, {"language", "python"}}).ok);
    CHECK(w.in("c", "import time; x = 1").ok);
    CHECK(w.client.ask({{"op", "interrupt"}, {"id", "c"}}).code() == "NOT_FOUND");
    Json body = w.code("print('on', flush=True)\nwhile True: time.sleep(0.01)");
    body["context"] = "c";
    const auto s = w.client.request(body);
    w.client.await(s, "on");
    CHECK(w.in("c", "1").code() == "BUSY");
    CHECK(w.client.ask({{"op", "interrupt"}, {"id", "c"}}).ok);
    Outcome o = w.client.finish(s);
    CHECK(o.result()["status"] == "failed");
    CHECK(parseJson(o.result()["report"].get<std::string>())["name"] == "KeyboardInterrupt");
    body = w.code("time.sleep(300)");
    body["context"] = "c";
    body["timeoutMs"] = 200;
    o = w.client.ask(body);
    CHECK(o.result()["status"] == "timeout");
    CHECK(o.result()["contextKept"] == true);
    CHECK(w.in("c", "x").shown().at(0)["mime"]["text/plain"] == "1");
    body = w.code("while True:\n    try: time.sleep(300)\n    except KeyboardInterrupt: pass");
    body["context"] = "c";
    body["timeoutMs"] = 200;
    o = w.client.ask(body);
    CHECK(o.result()["status"] == "timeout");
    CHECK(o.result()["contextKept"] == false);
    CHECK(w.in("c", "x").code() == "NOT_FOUND");
}

TEST_CASE("SystemExit ends a cell with its status and keeps the context",
          "[unit][agent][program]") {
    Warm w;
    REQUIRE(w.client.ask({{"op", "context"}, {"id", "c"}, {"language", "python"}}).ok);
    CHECK(w.in("c", "import sys; x = 41").ok);
    for (const auto& [code, status] :
         std::map<std::string, int>{{"sys.exit(4)", 4}, {"exit()", 0}, {"quit(None)", 0}}) {
        const Outcome o = w.in("c", code);
        CHECK(o.result()["exitCode"] == status);
        CHECK(o.result()["status"] == (status == 0 ? "ok" : "failed"));
        CHECK(o.result()["contextKept"] == true);
        CHECK(o.err.empty());
    }
    const Outcome text = w.in("c", "sys.exit('why')");
    CHECK(text.result()["exitCode"] == 1);
    CHECK(text.err == "why\n");
    CHECK(w.in("c", "x + 1").shown().at(0)["mime"]["text/plain"] == "42");
}

TEST_CASE("a context whose process ends is gone, with a message", "[unit][agent][program]") {
    Warm w;
    for (const char* code : {"import os; os._exit(4)", "import os; os.close(900)\nos._exit(4)"}) {
        REQUIRE(w.client.ask({{"op", "context"}, {"id", "c"}, {"language", "python"}}).ok);
        const Outcome o = w.in("c", code);
        // One that closes its channel is killed if it does not end at once.
        const bool killed = o.result()["exitCode"] == 137;
        CHECK((o.result()["exitCode"] == 4 ||
               (killed && std::string_view(code).find("close") != std::string_view::npos)));
        CHECK(o.result()["contextKept"] == false);
        CHECK(w.in("c", "1").code() == "NOT_FOUND");
        const Json make = {{"op", "context"}, {"id", "c"}, {"language", "python"}};
        CHECK(w.client.ask(make).body["repeated"] == false);
        CHECK(w.client.ask({{"op", "contextEnd"}, {"id", "c"}}).ok);
    }
    CHECK(w.client.ask({{"op", "context"}, {"id", "c"}, {"language", "shell"}}).code() ==
          "UNSUPPORTED");
    for (int i = 0; i < 8; ++i) {
        CHECK(w.client
                  .ask({{"op", "context"}, {"id", "n" + std::to_string(i)}, {"language", "python"}})
                  .ok);
    }
    CHECK(w.client.ask({{"op", "context"}, {"id", "n8"}, {"language", "python"}}).code() ==
          "TOO_MANY");
}

TEST_CASE("only the process that the agent has started reports for a run and a context",
          "[unit][agent][program]") {
    Warm w;
    // C code forks without the interpreter's knowledge, so the child keeps the channel.
    const std::string forger =
        "import ctypes, os\npid = ctypes.CDLL(None).fork()\nif pid == 0:\n"
        "    os.write(900, b'error 2\\n{}done 7\\n7 0 0 1')\n    os._exit(0)\n"
        "os.waitpid(pid, 0)\nprint('parent done')";
    REQUIRE(w.client.ask({{"op", "context"}, {"id", "c"}, {"language", "python"}}).ok);
    for (const Outcome& o : {w.fresh(forger), w.in("c", forger), w.in("c", forger)}) {
        CHECK(o.out == "parent done\n");
        CHECK(o.result()["exitCode"] == 0);
        CHECK(!o.result().contains("report"));
    }
    Bound cold;
    REQUIRE(cold.client.ask({{"op", "context"}, {"id", "c"}, {"language", "python"}}).ok);
    const Outcome o =
        cold.client.ask({{"op", "exec"}, {"id", "e"}, {"context", "c"}, {"code", forger}});
    CHECK(o.out == "parent done\n");
    CHECK(o.result()["exitCode"] == 0);
}

TEST_CASE("random generators of a module begin anew in each run, unless the module has seeded them",
          "[unit][agent][program]") {
    const hearth::test::TempDir dir;
    REQUIRE(chmod(dir.path().c_str(), 0777) == 0);
    std::ofstream(dir.file("dice.py"))
        << "import random\nfree, fixed = random.Random(), random.Random(5)\nrandom.seed(9)\n";
    std::filesystem::create_directory(dir.file("torch"));
    std::ofstream(dir.file("torch/__init__.py")) << R"(
class Generator:
    value = 1 << 40
    def initial_seed(self): return self.value
    def seed(self): self.value = __import__("os").getpid()
default_generator = Generator()
)";
    AgentProcess agent({R"(HEARTH_IMAGE={"env":["PYTHONPATH=)" + dir.path() + R"("]})"});
    Client client(agent.socket());
    client.ask(hello());
    const Outcome prewarmed =
        client.ask({{"op", "prewarm"},
                    {"languages", {{"python", {{"imports", {"dice", "torch"}}}}}},
                    {"waitMs", 20'000}});
    REQUIRE(prewarmed.body["failed"].empty());
    REQUIRE(client.ask(bindRequest()).ok);
    std::set<std::string> free;
    std::set<std::string> fixed;
    for (int i = 0; i < 60 && free.size() < 3; ++i) {
        const Outcome o = client.ask({{"op", "exec"},
                                      {"id", "e" + std::to_string(i)},
                                      {"language", "python"},
                                      {"code",
                                       "import dice, torch, random, os\n"
                                       "torch = torch.default_generator.initial_seed()\n"
                                       "print(dice.free.random(), torch == os.getpid())\n"
                                       "import sys; print(dice.fixed.random(), random.random(), "
                                       "file=sys.stderr)"},
                                      {"timeoutMs", 20'000}});
        if (o.result().value("interpreter", "") != "zygote") continue;
        CHECK(o.out.find(" True\n") != std::string::npos);
        CHECK(free.insert(o.out).second);
        fixed.insert(o.err);
    }
    CHECK(free.size() == 3);
    CHECK(fixed == std::set<std::string>{"0.6229016948897019 0.46300735781502145\n"});
}

TEST_CASE("contexts are announced in hello and work without a zygote", "[unit][agent][program]") {
    Bound b;
    REQUIRE(b.client.ask({{"op", "context"}, {"id", "c"}, {"language", "python"}}).ok);
    Json body = {{"op", "exec"}, {"id", "e"}, {"context", "c"}, {"code", "6 * 7"}};
    CHECK(b.client.ask(body).shown().at(0)["mime"]["text/plain"] == "42");
    Client again(b.agent.socket());
    Json greeting = hello();
    greeting["epoch"] = 5;
    const Outcome o = again.ask(greeting);
    CHECK(o.body["contexts"] ==
          Json::array({{{"id", "c"}, {"language", "python"}, {"running", false}}}));
}

TEST_CASE("a tenant's message in a zygote's name cannot end a process that it has not forked",
          "[unit][agent][program]") {
    const hearth::test::TempDir dir;
    REQUIRE(chmod(dir.path().c_str(), 0777) == 0);
    // A tenant's module in the zygote: it reports `dead` for the victim that it is given.
    std::ofstream(dir.file("forger.py")) << R"(
import os, threading, time
here = os.path.dirname(__file__)
def forge():
    while not os.path.exists(here + "/victim"): time.sleep(0.01)
    said = open(here + "/victim").read().strip() + " 0 0 0 0"
    os.write(3, b"dead %d\n%b" % (len(said), said.encode()))
    open(here + "/said", "w").close()
threading.Thread(target=forge, daemon=True).start()
)";
    AgentProcess agent({R"(HEARTH_IMAGE={"env":["PYTHONPATH=)" + dir.path() + R"("]})"});
    Client client(agent.socket());
    client.ask(hello());
    const Outcome prewarmed =
        client.ask({{"op", "prewarm"},
                    {"languages", {{"python", {{"imports", Json::array({"forger"})}}}}},
                    {"waitMs", 20'000}});
    REQUIRE(prewarmed.body["failed"].empty());
    REQUIRE(client.ask(bindRequest()).ok);
    const Outcome victim = client.ask({{"op", "exec"},
                                       {"id", "victim"},
                                       {"command", "cd " + dir.path() +
                                                       "; echo $$ > pid; mv pid victim; "
                                                       "until [ -e said ]; do sleep 0.01; done; "
                                                       "sleep 0.2; exit 7"},
                                       {"timeoutMs", 20'000}});
    CHECK(victim.result()["exitCode"] == 7);
}

TEST_CASE("the numbers that a driver reports are bounded", "[unit][agent][program]") {
    Warm w;
    for (const char* told : {"0 -1 -1", "0 9223372036854775807 9223372036854775807",
                             "-1 -9223372036854775808 0", "0 99999999999999999999999999 1"}) {
        const Outcome o = w.fresh("import os; said = b'" + std::string(told) +
                                  "'; os.write(900, b'done %d\\n%b' % (len(said), said))");
        CHECK(o.result()["cpuMs"].get<std::int64_t>() >= 0);
        CHECK(o.result()["maxRssBytes"].get<std::int64_t>() >= 0);
        CHECK(o.result()["cpuMs"].get<std::int64_t>() < 1LL << 40U);
        CHECK(o.result()["maxRssBytes"].get<std::int64_t>() <= 1LL << 50U);
    }
}
