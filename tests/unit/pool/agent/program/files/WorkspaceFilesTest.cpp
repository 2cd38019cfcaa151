#include <catch2/catch.hpp>
#include <utility>

#include "tests/unit/pool/agent/program/Harness.h"

using namespace hearth::agent::program;
using hearth::Json;
using hearth::agent::FrameType;

namespace {

/// A bound agent with a data connection for the files.
struct Files : Bound {
    Files() : data(agent.socket()) {
        data.ask(
            {{"op", "hello"}, {"protocol", 1}, {"kind", "data"}, {"epoch", 1}, {"claimId", "c1"}});
    }
    Outcome write(const std::string& path, const std::string& bytes, Json more = Json::object()) {
        more.update({{"op", "write"}, {"path", path}, {"parents", true}});
        const auto s = data.request(more);
        data.send(FrameType::Data, s, bytes);
        data.send(FrameType::End, s, "");
        return data.finish(s);
    }
    Outcome read(const std::string& path, std::int64_t offset = 0, std::int64_t length = 0) {
        return data.ask({{"op", "read"}, {"path", path}, {"offset", offset}, {"length", length}});
    }
    std::string shell(const std::string& command) {
        return client.ask(exec("sh" + std::to_string(++count), command)).out;
    }
    Client data;
    int count = 0;
};

}  // namespace

TEST_CASE("a file is written whole, with its parents, and read back in parts",
          "[unit][agent][program]") {
    Files f;
    Outcome w = f.write("a/b/c.txt", "hello world", {{"mode", 0640}});
    REQUIRE(w.ok);
    CHECK(w.body["stat"]["size"] == 11);
    CHECK(w.body["stat"]["mode"] == 0640);
    Outcome r = f.read("/workspace/a/b/c.txt");
    CHECK(r.out == "hello world");
    CHECK(r.body["bytes"] == 11);
    CHECK(r.note["stat"]["etag"] == w.body["stat"]["etag"]);
    CHECK(f.read("a/b/c.txt", 6, 3).out == "wor");
    CHECK(f.read("a/b/c.txt", 100, 3).out.empty());
    CHECK(f.write("a/b/c.txt", "new").ok);
    CHECK(f.read("a/b/c.txt").out == "new");
    if (geteuid() == 0)
        CHECK(f.shell("stat -c %u:%g:%a a/b/c.txt a") == "1000:1000:640\n1000:1000:755\n");
    CHECK(f.read("none").code() == "NOT_FOUND");
    CHECK(f.read("a").code() == "IS_A_DIRECTORY");
    CHECK(f.write("a", "x").code() == "IS_A_DIRECTORY");
    CHECK(f.write("a/b/c.txt/d", "x").code() == "NOT_A_DIRECTORY");
}

TEST_CASE("a write that is not finished is never seen", "[unit][agent][program]") {
    Files f;
    f.write("x", "old");
    const auto s = f.data.request({{"op", "write"}, {"path", "x"}});
    f.data.send(FrameType::Data, s, "half");
    CHECK(f.read("x").out == "old");
    CHECK(f.data.ask({{"op", "list"}, {"path", ""}}).body["items"].size() == 1);
    f.data.send(FrameType::Cancel, s, "");
    CHECK(f.data.finish(s).code() == "CANCELLED");
    CHECK(f.read("x").out == "old");
    CHECK(f.shell("ls -A") == "x\n");
}

TEST_CASE("no path leads out of the workspace", "[unit][agent][program]") {
    Files f;
    f.shell(
        "ln -s /etc/passwd abs; ln -s ../../../../etc up; ln -s /etc dir; mkdir d; ln -s d in; "
        "echo safe > d/file; ln -s d/file link; ln -s loop loop; ln -s /proc/self/root magic");
    for (const char* path :
         {"../etc/passwd", "/etc/passwd", "abs", "up/passwd", "dir/passwd", "a//b", "d/../../x",
          "loop", "magic/etc/passwd", "/workspace/../etc/passwd"}) {
        INFO(path);
        CHECK(f.read(path).code() == "BAD_PATH");
    }
    CHECK(f.read(std::string("a\0b", 3)).code() == "BAD_PATH");
    CHECK(f.read("in/file").out == "safe\n");
    CHECK(f.read("link").out == "safe\n");
    CHECK(f.write("dir/evil", "x").code() == "BAD_PATH");
    CHECK(f.data.ask({{"op", "list"}, {"path", "dir"}}).code() == "BAD_PATH");
    CHECK(f.data.ask({{"op", "remove"}, {"path", ""}, {"recursive", true}}).code() == "BAD_PATH");
    CHECK(f.data.ask({{"op", "move"}, {"from", "d/file"}, {"to", "dir/file"}}).code() ==
          "BAD_PATH");
    CHECK(f.data.ask({{"op", "stat"}, {"path", "abs"}}).body["stat"]["type"] == "symlink");
    CHECK(f.write("abs", "mine").ok);  // replaces the link itself
    CHECK(f.read("abs").out == "mine");
}

TEST_CASE("a refused move names its second path if that is the bad one", "[unit][agent][program]") {
    Files f;
    f.write("a", "1");
    f.write("b", "2");
    f.shell("ln -s / out");
    const auto refusal = [&](const std::string& from, const std::string& to) {
        const Outcome o = f.data.ask({{"op", "move"}, {"from", from}, {"to", to}});
        return o.code() + " " + o.body.value("field", "from");
    };
    CHECK(refusal("../a", "../b") == "BAD_PATH from");
    CHECK(refusal("out/a", "c") == "BAD_PATH from");
    CHECK(refusal("none", "../b") == "NOT_FOUND from");
    CHECK(refusal("a", "../b") == "BAD_PATH to");
    CHECK(refusal("a", "") == "BAD_PATH to");
    CHECK(refusal("a", "out/b") == "BAD_PATH to");
    CHECK(refusal("a", "b/c") == "NOT_A_DIRECTORY to");
    CHECK(refusal("a", "b") == "EXISTS to");
}

TEST_CASE("special files are refused and never block", "[unit][agent][program]") {
    Files f;
    f.shell("mkfifo fifo; mkdir closed; chmod 0 closed; echo x > secret; chmod 0 secret");
    CHECK(f.read("fifo").code() == "NOT_A_FILE");
    CHECK(f.write("fifo", "x").code() == "NOT_A_FILE");
    if (geteuid() == 0) {
        CHECK(f.read("secret").code() == "DENIED");  // with the tenant's rights, not root's
        CHECK(f.write("closed/x", "x").code() == "DENIED");
    }
}

TEST_CASE("directories are listed in pages, in one order", "[unit][agent][program]") {
    Files f;
    f.shell(
        "mkdir -p a/deep b; touch a/1 a/2 a/deep/x a-b b/y z; ln -s z l; printf 'x' > \"$(printf "
        "'bad\\377')\"");
    std::vector<std::string> seen;
    Json ask = {{"op", "list"}, {"path", ""}, {"recursive", true}, {"limit", 2}};
    for (int pages = 0; pages < 20; ++pages) {
        Outcome o = f.data.ask(ask);
        REQUIRE(o.ok);
        for (const Json& item : o.body["items"]) seen.push_back(item["path"]);
        if (!o.body.contains("next")) break;
        ask["after"] = o.body["next"];
    }
    CHECK(seen == std::vector<std::string>{"a", "a/1", "a/2", "a/deep", "a/deep/x", "a-b", "b",
                                           "b/y", "bad%FF", "l", "z"});
    Outcome flat = f.data.ask({{"op", "list"}, {"path", "a"}});
    CHECK(flat.body["items"].size() == 3);
    CHECK(flat.body["items"][2]["type"] == "directory");
    CHECK(f.data.ask({{"op", "list"}, {"path", "z"}}).code() == "NOT_A_DIRECTORY");
    f.shell("mkdir many; cd many; i=0; while [ $i -lt 1500 ]; do : > f$i; i=$((i+1)); done");
    Outcome many = f.data.ask({{"op", "list"}, {"path", "many"}, {"limit", 5000}});
    CHECK(many.body["items"].size() == 1'000);
    Outcome rest = f.data.ask({{"op", "list"}, {"path", "many"}, {"after", many.body["next"]}});
    CHECK(rest.body["items"].size() == 500);
}

TEST_CASE("directories are made, moved and removed", "[unit][agent][program]") {
    Files f;
    CHECK(f.data.ask({{"op", "mkdir"}, {"path", "p/q"}}).ok);
    CHECK(f.data.ask({{"op", "mkdir"}, {"path", "p/q"}}).code() == "EXISTS");
    f.write("p/q/f", "1");
    f.write("g", "2");
    CHECK(f.data.ask({{"op", "move"}, {"from", "g"}, {"to", "p/q/f"}}).code() == "EXISTS");
    CHECK(f.data.ask({{"op", "move"}, {"from", "g"}, {"to", "p/q/f"}, {"replace", true}}).ok);
    CHECK(f.read("p/q/f").out == "2");
    CHECK(f.data.ask({{"op", "move"}, {"from", "none"}, {"to", "new/f"}}).code() == "NOT_FOUND");
    CHECK(f.data.ask({{"op", "stat"}, {"path", "new"}}).code() == "NOT_FOUND");
    CHECK(f.data.ask({{"op", "move"}, {"from", "p"}, {"to", "new/deep/r"}}).ok);
    CHECK(f.data.ask({{"op", "move"}, {"from", "new/deep/r"}, {"to", "r"}}).ok);
    CHECK(f.data.ask({{"op", "remove"}, {"path", "r"}, {"recursive", false}}).code() == "EXISTS");
    CHECK(f.data.ask({{"op", "remove"}, {"path", "r"}, {"recursive", true}}).ok);
    CHECK(f.data.ask({{"op", "stat"}, {"path", "r"}}).code() == "NOT_FOUND");
}

TEST_CASE("reads and writes of files keep a workspace from being idle, lists do not",
          "[unit][agent][program]") {
    Files f;
    std::int64_t before = 0;
    const auto moved = [&] {
        const Outcome now =
            f.client.ask({{"op", "deadlines"}, {"epoch", 1}, {"idleTimeoutMs", 3'600'000}});
        return now.body["idleAtNs"].get<std::int64_t>() >
               std::exchange(before, now.body["idleAtNs"].get<std::int64_t>());
    };
    REQUIRE(f.write("d/f", "x").ok);
    CHECK(moved());
    CHECK_FALSE(moved());
    REQUIRE(f.data.ask({{"op", "list"}, {"path", "d"}}).ok);
    REQUIRE(f.data.ask({{"op", "stat"}, {"path", "d/f"}}).ok);
    CHECK_FALSE(moved());
    REQUIRE(f.read("d/f").ok);
    CHECK(moved());
    REQUIRE(f.data.ask({{"op", "archiveGet"}, {"path", "d"}}).ok);
    CHECK(moved());
    REQUIRE(f.data.ask({{"op", "move"}, {"from", "d/f"}, {"to", "d/g"}}).ok);
    CHECK(moved());
    CHECK(f.read("none").code() == "NOT_FOUND");
    CHECK_FALSE(moved());

    const auto slow = f.data.request({{"op", "write"}, {"path", "slow"}});
    f.data.send(FrameType::Data, slow, "x");
    REQUIRE(f.data.ask({{"op", "stat"}, {"path", "d/g"}}).ok);  // earlier frames have arrived
    CHECK(moved());
    f.data.send(FrameType::End, slow, "");
    CHECK(f.data.finish(slow).ok);
}

TEST_CASE("changes are the files written since, even with old dates", "[unit][agent][program]") {
    Files f;
    f.write("before", "1");
    f.shell("sleep 0.05");
    const auto now = f.client.ask({{"op", "touch"}}).body["lastActivityNs"].get<std::int64_t>();
    f.shell("mkdir d; echo x > d/after; touch -d 2001-01-01 d/after");
    Outcome o = f.data.ask({{"op", "changes"}, {"sinceNs", now}, {"limit", 10}});
    REQUIRE(o.body["items"].size() == 1);
    CHECK(o.body["items"][0]["path"] == "d/after");
}

TEST_CASE("an incomplete list of changes says so", "[unit][agent][program]") {
    Files f;
    f.shell("for i in 1 2 3 4 5; do echo x > f$i; done");
    const auto changes = [&](int limit) {
        return f.data.ask({{"op", "changes"}, {"sinceNs", 0}, {"limit", limit}}).body;
    };
    CHECK(changes(5)["items"].size() == 5);
    CHECK_FALSE(changes(5).contains("more"));
    CHECK(changes(4)["items"].size() == 4);
    CHECK(changes(4)["more"] == true);
    f.shell("d=.; for i in $(seq 66); do d=$d/d; done; mkdir -p $d; echo x > $d/deep");
    CHECK(changes(10)["items"].size() == 5);
    CHECK(changes(10)["more"] == true);
}

TEST_CASE("large files stream by credit, and one stalled stream does not stop another",
          "[unit][agent][program]") {
    Files f;
    f.shell("head -c 3000000 /dev/zero > big");
    const auto stalled =
        f.data.request({{"op", "read"}, {"path", "big"}, {"offset", 0}, {"length", 0}});
    std::size_t received = 0;
    Frame frame;
    while (received < hearth::agent::kInitialCredit) {
        REQUIRE(f.data.next(frame));
        if (frame.header.type == FrameType::Data) received += frame.payload.size();
    }
    CHECK(received == hearth::agent::kInitialCredit);
    CHECK(f.write("small", "x").ok);
    CHECK(f.read("big").out.size() == 3'000'000);
    f.data.credit(stalled, 10'000'000);
    Outcome o = f.data.finish(stalled);
    CHECK(o.out.size() + received == 3'000'000);
    CHECK(f.agent.rssKib() < 6'000);
}
