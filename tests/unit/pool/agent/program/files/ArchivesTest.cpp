#include <catch2/catch.hpp>
#include <random>

#include "tests/unit/pool/agent/program/Harness.h"
#include "tests/unit/pool/agent/program/files/TarMaker.h"

using namespace hearth;
using namespace hearth::agent::program;
using hearth::agent::FrameType;

namespace {

/// A bound agent, its workspace, and archives sent to it as the server does.
struct Archives {
    Archives() : data(bound.agent.socket()) {
        if (!data.ask({{"op", "hello"},
                       {"protocol", 1},
                       {"kind", "data"},
                       {"epoch", 1},
                       {"claimId", "c1"}})
                 .ok)
            throw std::runtime_error("hello");
    }

    Outcome put(const std::string& tar, const std::string& path = ".", std::size_t piece = 50'000) {
        const std::uint32_t stream = data.request({{"op", "archivePut"}, {"path", path}});
        // All archives here are small enough for the window.
        for (std::size_t at = 0; at < tar.size(); at += piece) {
            data.send(FrameType::Data, stream, tar.substr(at, piece));
        }
        data.send(FrameType::End, stream, "");
        return data.finish(stream);
    }
    std::string refusal(const std::string& tar) {
        const Outcome o = put(tar);
        if (o.ok) return "accepted";
        if (!files().empty()) return "left something behind: " + files();
        return o.body.value("message", "");
    }
    Outcome get(const std::string& path = ".") {
        return data.ask({{"op", "archiveGet"}, {"path", path}});
    }
    /// Returns all paths in the workspace, also those that no listing shows.
    std::string files() const {
        std::string all;
        for (const auto& entry :
             std::filesystem::recursive_directory_iterator(bound.agent.root())) {
            all += entry.path().string().substr(bound.agent.root().size() + 1) + " ";
        }
        return all;
    }
    std::string content(const std::string& path) const {
        std::ifstream in(bound.agent.root() + "/" + path);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void shell(const std::string& command) {
        if (!bound.client.ask(exec("x" + std::to_string(++serial), command)).ok)
            throw std::runtime_error(command);
    }

    Bound bound;
    Client data;
    int serial = 0;
};

bool has(const std::string& text, const std::string& part) {
    const bool found = text.find(part) != std::string::npos;
    if (!found) UNSCOPED_INFO(text);
    return found;
}

}  // namespace

TEST_CASE("an archive of files, directories and links is unpacked with modes and times",
          "[unit][agent][program]") {
    Archives a;
    const std::string tar = TarMaker()
                                .directory("sub/", 0755)
                                .file("sub/a.txt", "hello", 0755, 1'000'000)
                                .file("./b.txt", "world")
                                .symlink("sub/link", "../b.txt")
                                .hardlink("same", "b.txt")
                                .file("deep/er/c", "")
                                .done();
    for (const std::size_t piece : {1UL, 511UL, 50'000UL}) {
        const Outcome o = a.put(tar, "to/here", piece);
        REQUIRE(o.ok);
        CHECK(o.body.value("files", 0) == 3);
        CHECK(o.body.value("links", 0) == 2);
        CHECK(o.body.value("bytes", 0) == 10);
    }
    CHECK(a.content("to/here/sub/a.txt") == "hello");
    CHECK(a.content("to/here/sub/link") == "world");
    CHECK(a.content("to/here/same") == "world");
    struct stat st {};
    REQUIRE(::stat((a.bound.agent.root() + "/to/here/sub/a.txt").c_str(), &st) == 0);
    CHECK((st.st_mode & 07777U) == 0755);
    CHECK(st.st_mtime == 1'000'000);
}

TEST_CASE("set-id bits are stripped and long names of both kinds are read",
          "[unit][agent][program]") {
    Archives a;
    const std::string name(150, 'n');
    REQUIRE(a.put(TarMaker()
                      .file("suid", "x", 06755)
                      .gnuLong(name + "/gnu", "1")
                      .pax({{"path", name + "/pax"}, {"mtime", "5.25"}}, "ignored", "22")
                      .done())
                .ok);
    struct stat st {};
    REQUIRE(::stat((a.bound.agent.root() + "/suid").c_str(), &st) == 0);
    CHECK((st.st_mode & 07777U) == 0755);
    CHECK(a.content(name + "/gnu") == "1");
    CHECK(a.content(name + "/pax") == "22");
}

TEST_CASE("a link keeps its target, wherever that is", "[unit][agent][program]") {
    Archives a;
    const Outcome put = a.put(TarMaker()
                                  .file("venv/pyvenv.cfg", "home = /usr/bin\n")
                                  .symlink("venv/bin/python", "/usr/bin/python3")
                                  .symlink("venv/up", "../../..")
                                  .done());
    REQUIRE(put.ok);
    const std::filesystem::path root = a.bound.agent.root();
    CHECK(std::filesystem::read_symlink(root / "venv/bin/python") == "/usr/bin/python3");
    CHECK(std::filesystem::read_symlink(root / "venv/up") == "../../..");
}

TEST_CASE("a hostile archive is refused by name and leaves nothing", "[unit][agent][program]") {
    Archives a;
    CHECK(has(a.refusal(TarMaker().file("/etc/passwd", "x").done()), "\"/etc/passwd\""));
    CHECK(has(a.refusal(TarMaker().file("ok", "x").file("a/../../b", "x").done()), "\"..\""));
    CHECK(has(a.refusal(TarMaker().symlink("l", "/etc").file("l/x", "x").done()), "\"l/x\""));
    CHECK(has(a.refusal(TarMaker().symlink("l", "/etc/x").file("l", "x").done()), "twice"));
    CHECK(has(a.refusal(TarMaker().symlink("d", ".").file("d/x", "x").done()), "\"d/x\""));
    CHECK(has(a.refusal(TarMaker().hardlink("h", "/etc/passwd").done()), "hard link"));
    CHECK(has(a.refusal(TarMaker().hardlink("h", "absent").done()), "hard link"));
    CHECK(has(a.refusal(TarMaker().symlink("s", "x").hardlink("h", "s").done()), "hard link"));
    CHECK(has(a.refusal(TarMaker().raw("dev", '3').done()), "device"));
    CHECK(has(a.refusal(TarMaker().raw("dev", '4').done()), "device"));
    CHECK(has(a.refusal(TarMaker().raw("pipe", '6').done()), "FIFO"));
    CHECK(has(a.refusal(TarMaker().raw("sparse", 'S').done()), "sparse"));
    CHECK(has(a.refusal(TarMaker().pax({{"GNU.sparse.major", "1"}}, "f", "x").done()), "sparse"));
    CHECK(has(a.refusal(TarMaker().file("twice", "1").file("./twice", "2").done()), "twice"));
    CHECK(has(a.refusal(TarMaker().file("f", "1").file("f/g", "2").done()), "no directory"));
    CHECK(has(a.refusal(TarMaker().gnuLong(std::string(10'000, 'x'), "x").done()), "4096"));
    CHECK(has(a.refusal(TarMaker().pax({{"path", std::string(10'000, 'x')}}, "f", "x").done()),
              "4096"));
    CHECK(has(a.refusal(TarMaker().gnuLong(std::string(300, 'x'), "x").done()), "too long"));
    std::string deep;
    for (int i = 0; i < 80; ++i) deep += "d/";
    CHECK(has(a.refusal(TarMaker().gnuLong(deep + "x", "x").done()), "64 levels"));
    CHECK(
        has(a.refusal(
                TarMaker().sized("neg", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff").done()),
            "negative"));
    CHECK(
        has(a.refusal(
                TarMaker().sized("big", "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff").done()),
            "too large"));
    CHECK(has(a.refusal(TarMaker().sized("odd", "12345678x00").done()), "no number"));
    CHECK(has(a.refusal(TarMaker().pax({{"size", "-1"}}, "f", "x").done()), "size"));
    CHECK(has(a.refusal(TarMaker().pax({{"size", "99999999999999999999"}}, "f", "x").done()),
              "size"));
    CHECK(has(
        a.refusal(TarMaker().sized("huge", std::string("\x80\0\0\0\0\x10\0\0\0\0\0\0", 12)).done()),
        "No space"));
    CHECK(has(a.refusal(TarMaker().file(".hearth-write-1", "x").done()), "reserved"));
    const std::string whole = TarMaker().file("a", std::string(3'000, 'a')).done();
    CHECK(has(a.refusal(whole.substr(0, 1'000)), "cut off"));
    CHECK(has(a.refusal(whole.substr(0, 512 + 3'072)), "cut off"));
    CHECK(has(a.refusal(std::string("\x1f\x8b\x08") + std::string(600, 'z')), "compressed"));
    CHECK(has(a.refusal(std::string(600, 'z')), "no tar"));
    CHECK(has(a.refusal(""), "cut off"));
}

TEST_CASE("a merge keeps what is there, replaces files and refuses a change of kind",
          "[unit][agent][program]") {
    Archives a;
    a.shell("mkdir -p d/keep; echo old > d/f; echo stays > d/other; ln -s other d/l");
    REQUIRE(a.put(TarMaker().file("d/f", "new").file("d/l", "plain").done()).ok);
    CHECK(a.content("d/f") == "new");
    CHECK(a.content("d/other") == "stays\n");
    CHECK(a.content("d/l") == "plain");
    const Outcome into = a.put(TarMaker().file("x", "1").file("d/keep", "file").done());
    CHECK(into.code() == "ARCHIVE_CONFLICT");
    CHECK(has(into.body.value("message", ""), "\"d/keep\""));
    CHECK_FALSE(std::filesystem::exists(a.bound.agent.root() + "/x"));
    CHECK(a.put(TarMaker().file("d/f/g", "2").done()).code() == "ARCHIVE_CONFLICT");
}

TEST_CASE("a tree that is too deep for an archive is refused before the first byte",
          "[unit][agent][program]") {
    Archives a;
    std::string deep = "t/a";
    for (int i = 1; i < 64; ++i) deep += "/d";
    a.shell("mkdir -p t/b '" + deep + "'; head -c 1000000 /dev/zero > t/b/large; : > '" + deep +
            "/file'");
    CHECK(a.get("t").ok);  // 64 levels
    a.shell("mkdir '" + deep + "/more'");
    const Outcome refused = a.get("t");
    CHECK(refused.code() == "ARCHIVE_LIMIT");
    CHECK(has(refused.body.value("message", ""), "deeper than 64 levels"));
    CHECK(refused.out.empty());
    CHECK(refused.note.is_null());
    CHECK(a.get("t/a").ok);
}

TEST_CASE("a packed tree unpacks to the same files", "[unit][agent][program]") {
    Archives a;
    const std::string name(200, 'n');
    a.shell(
        "mkdir -p t/e/m; mkdir t/'" + name + "'; echo 1 > t/'" + name +
        "'/x; head -c 1000 /dev/zero > t/z; chmod 0750 t/z; ln -s z t/l; mkfifo t/p; : > t/e/0");
    const Outcome tar = a.get("t");
    REQUIRE(tar.ok);
    CHECK(tar.out.size() % 512 == 0);
    CHECK(tar.body.value("entries", 0) == 7);
    const Outcome back = a.put(tar.out, "u");
    INFO(back.body.dump());
    REQUIRE(back.ok);
    a.shell(
        "rm t/p; diff -r t u && echo same > verdict; [ -x u/z ] && [ -L u/l ] && echo yes >> "
        "verdict");
    CHECK(a.content("verdict") == "same\nyes\n");
    CHECK(a.get("absent").code() == "NOT_FOUND");
    CHECK(a.get("t/z").code() == "NOT_A_DIRECTORY");
    CHECK(a.get("../..").code() == "BAD_PATH");
}

TEST_CASE("an archive that nobody reads, or whose sender is gone, costs nothing",
          "[unit][agent][program]") {
    Archives a;
    a.shell(
        "mkdir m; cd m; i=0; while [ $i -lt 300 ]; do echo $i > $i; i=$((i+1)); done; "
        "head -c 30000000 /dev/zero > big");
    const std::uint32_t stalled = a.data.request({{"op", "archiveGet"}, {"path", "."}});
    CHECK(a.get("m").out.size() > 30'000'000);
    CHECK(a.bound.agent.rssKib() < 6'000);
    a.data.send(FrameType::Cancel, stalled, "");
    {
        Archives* const self = &a;
        const std::uint32_t half = self->data.request({{"op", "archivePut"}, {"path", "h"}});
        self->data.send(FrameType::Data, half,
                        TarMaker().file("one", "1").file("two", "2").done().substr(0, 1'100));
        self->data.send(FrameType::Cancel, half, "");
        CHECK(self->data.finish(half).code() == "CANCELLED");
    }
    // The answer to another request comes after the clean-up.
    CHECK(a.data.ask({{"op", "stat"}, {"path", "h"}}).code() == "NOT_FOUND");
    CHECK_FALSE(has(a.files(), ".hearth-write"));
}

TEST_CASE("a broken archive neither ends the agent, writes outside the workspace nor leaves files",
          "[unit][agent][program]") {
    Archives a;
    const std::string good = TarMaker()
                                 .directory("d/")
                                 .file("d/a", "some content")
                                 .gnuLong("d/" + std::string(120, 'l'), "long")
                                 .pax({{"path", "d/p"}, {"size", "3"}}, "q", "abc")
                                 .symlink("d/s", "a")
                                 .hardlink("d/h", "d/a")
                                 .done();
    std::mt19937 random(7);
    int accepted = 0;
    for (int round = 0; round < 400; ++round) {
        std::string bad = good;
        const unsigned changes = 1 + random() % 4;
        for (unsigned i = 0; i < changes; ++i) {
            const std::size_t at = random() % bad.size();
            switch (random() % 3) {
                case 0:
                    bad[at] = static_cast<char>(random());
                    break;
                case 1:
                    bad.erase(at, random() % 600);
                    break;
                default:
                    bad.insert(at, good.substr(random() % good.size(), random() % 700));
            }
            if (bad.empty()) bad = "x";
        }
        if (random() % 2 == 0) TarMaker::repair(bad);
        const Outcome o = a.put(bad, "w", 1 + random() % 3'000);
        if (o.ok) ++accepted;
        INFO(round);
        REQUIRE_FALSE(has(a.files() + " ", ".hearth-write-"));
        REQUIRE(o.code() != "INTERNAL");
    }
    CHECK(accepted > 0);
    CHECK(a.bound.agent.alive());
    CHECK(a.put(good, "after").ok);
}
