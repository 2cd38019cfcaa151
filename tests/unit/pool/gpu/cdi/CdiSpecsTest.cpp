#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "base/Error.h"
#include "pool/gpu/cdi/CdiSpecs.h"
#include "pool/sys/Files.h"

using namespace hearth;
using namespace hearth::pool::cdi;

namespace {

const std::string kFirst = "GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76";
const std::string kSecond = "GPU-7f0cd4e5-0e5b-4c37-a8ab-9d3e4c1b2a60";

/// Two folders of CDI files, `etc` and `run`. `run` takes precedence.
class CdiFixture {
public:
    CdiFixture() {
        char path[] = "/tmp/hearth-cdi-XXXXXX";
        REQUIRE(::mkdtemp(path) != nullptr);
        root_ = path;
        for (const char* name : {"/etc", "/run"}) sys::makeDirectory(root_ + name, 0755);
    }
    ~CdiFixture() { std::filesystem::remove_all(root_); }

    std::string write(const std::string& name, const std::string& text, mode_t mode = 0644) {
        sys::writeFile(root_ + "/" + name, text, mode);
        return root_ + "/" + name;
    }
    CdiSpecs read() const {
        return CdiSpecs::read({{root_ + "/etc", root_ + "/run"}, ::geteuid()});
    }
    const std::string& root() const { return root_; }

private:
    std::string root_;
};

std::string file(const std::string& device, const std::string& node,
                 const std::string& env = "NVIDIA_VISIBLE_DEVICES=void") {
    return R"({"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","containerEdits":{"env":[")" + env +
           R"("],"hooks":[{"hookName":"createContainer","path":"/usr/bin/hook"}]},"devices":[{"name":")" +
           device + R"(","containerEdits":{"deviceNodes":[{"path":")" + node + R"("}]}}]})";
}

std::string missing(const CdiSpecs& specs, const std::vector<std::string>& uuids) {
    try {
        specs.gpus(uuids);
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::Unsupported);
        CHECK_FALSE(e.hint().empty());
        return e.what();
    }
    return "found";
}

}  // namespace

TEST_CASE("several devices of one file bring the file's own edits once", "[unit][cdi]") {
    CdiFixture fixture;
    const std::string text =
        sys::readFile(HEARTH_SOURCE_DIR "/tests/unit/pool/gpu/cdi/corpus/two_gpus.yaml").value();
    fixture.write("etc/nvidia.yaml", text);
    const CdiSpecs specs = fixture.read();
    CHECK(specs.problems().empty());
    const CdiEdits one = specs.gpus({kSecond});
    CHECK(one.nodes.size() == 5);
    CHECK(one.hooks.size() == 2);
    CHECK(one.mounts.size() == 3);
    const CdiEdits two = specs.gpus({kFirst, kSecond});
    CHECK(two.nodes.size() == 8);
    CHECK(two.hooks.size() == 3);
    CHECK(two.mounts.size() == 3);
    CHECK(two.env.size() == 1);
    CHECK(two.nodes.front().path == "/dev/nvidia-modeset");
    CHECK(specs.gpus({}).empty());
    CHECK(specs.gpuUuids() == std::vector<std::string>{kSecond, kFirst});  // without "all"
}

TEST_CASE("a device of the later folder outweighs that of the earlier", "[unit][cdi]") {
    CdiFixture fixture;
    fixture.write("etc/a.json", file(kFirst, "/dev/old", "FROM=etc"));
    fixture.write("etc/b.json", file(kSecond, "/dev/second", "FROM=etc"));
    fixture.write("run/a.json", file(kFirst, "/dev/new", "FROM=run"));
    const CdiSpecs specs = fixture.read();
    const CdiEdits edits = specs.gpus({kFirst});
    REQUIRE(edits.nodes.size() == 1);
    CHECK(edits.nodes[0].path == "/dev/new");
    CHECK(edits.env == std::vector<std::string>{"FROM=run"});
    // Nothing is taken from two files that contradict each other.
    CHECK(missing(specs, {kFirst, kSecond}).find("FROM") != std::string::npos);
}

TEST_CASE("a device that two files of a folder describe is refused, and no other", "[unit][cdi]") {
    CdiFixture fixture;
    fixture.write("etc/a.json", file(kFirst, "/dev/a"));
    fixture.write("etc/b.json", file(kFirst, "/dev/b"));
    fixture.write("etc/c.json", file(kSecond, "/dev/c"));
    const std::string said = missing(fixture.read(), {kFirst});
    CHECK(said.find("two files of one folder") != std::string::npos);
    CHECK(said.find("/etc/a.json") != std::string::npos);
    CHECK(said.find("/etc/b.json") != std::string::npos);
    CHECK(fixture.read().gpuUuids() == std::vector<std::string>{kSecond});
    CHECK(fixture.read().gpus({kSecond}).nodes.at(0).path == "/dev/c");
    // A folder that takes precedence over both decides.
    fixture.write("run/a.json", file(kFirst, "/dev/decided"));
    CHECK(fixture.read().gpus({kFirst}).nodes.at(0).path == "/dev/decided");
}

TEST_CASE("one bad file does not spoil the others", "[unit][cdi]") {
    CdiFixture fixture;
    fixture.write("etc/bad.json", "{");
    const std::string field = fixture.write("etc/bad.yaml", "cdiVersion: 0.5.0\nkind: x\n");
    fixture.write("etc/good.json", file(kFirst, "/dev/a"));
    fixture.write("etc/notes.txt", "{");
    const CdiSpecs specs = fixture.read();
    CHECK(specs.gpus({kFirst}).nodes.size() == 1);
    REQUIRE(specs.problems().size() == 2);
    CHECK(specs.problems()[1].file == field);
    CHECK(specs.problems()[1].why.starts_with("/kind is \"x\""));
}

TEST_CASE("a device that no file names is an error with the files that were read", "[unit][cdi]") {
    CdiFixture fixture;
    const std::string nothing = missing(fixture.read(), {kFirst});
    CHECK(nothing.find(kFirst) != std::string::npos);
    CHECK(nothing.find("there is no .json or .yaml file in " + fixture.root() + "/etc, ") !=
          std::string::npos);
    fixture.write("etc/other.json", file("0", "/dev/nvidia0"));
    const std::string bad = fixture.write("run/bad.json", "{");
    const std::string said = missing(fixture.read(), {kFirst});
    CHECK(said.find("other.json (1 of kind nvidia.com/gpu)") != std::string::npos);
    CHECK(said.find(bad + " (refused: ") != std::string::npos);
    try {
        fixture.read().gpus({kFirst});
    } catch (const Error& e) {
        CHECK(e.hint().find("--device-name-strategy=uuid") != std::string::npos);
    }
}

TEST_CASE("a device of another kind is none of the GPUs", "[unit][cdi]") {
    CdiFixture fixture;
    std::string text = file(kFirst, "/dev/a");
    text.replace(text.find("nvidia.com/gpu"), 14, "example.io/gpu");
    fixture.write("etc/a.json", text);
    CHECK(missing(fixture.read(), {kFirst}).find("no CDI file names the device") == 0);
}

TEST_CASE("a file that somebody else could change is refused", "[unit][cdi]") {
    CdiFixture fixture;
    const std::string good = file(kFirst, "/dev/a");
    const auto why = [&] {
        const CdiSpecs specs = fixture.read();
        CHECK(missing(specs, {kFirst}) != "found");
        return specs.problems().empty() ? std::string("none") : specs.problems().front().why;
    };
    const std::string path = fixture.write("etc/a.json", good);
    REQUIRE(::chmod(path.c_str(), 0664) == 0);
    CHECK(why().find("others than its owner may write to it") == 0);
    REQUIRE(::chmod(path.c_str(), 0646) == 0);
    CHECK(why().find("others than its owner may write to it") == 0);
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
    REQUIRE(::chmod((fixture.root() + "/etc").c_str(), 0777) == 0);
    CHECK(why().find("others than its owner may write to it") == 0);
    REQUIRE(::chmod((fixture.root() + "/etc").c_str(), 0755) == 0);
    CHECK(fixture.read().gpus({kFirst}).nodes.size() == 1);

    const CdiSpecs stranger = CdiSpecs::read({{fixture.root() + "/etc"}, ::geteuid() + 1});
    REQUIRE(stranger.problems().size() == 1);
    CHECK(stranger.problems()[0].why.find("belongs to user") == 0);

    std::filesystem::rename(path, fixture.root() + "/a.json");
    std::filesystem::create_symlink(fixture.root() + "/a.json", path);
    CHECK(why() == "is a symbolic link");
    std::filesystem::remove(path);
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    CHECK(why() == "is not a regular file");
    std::filesystem::remove(path);
    fixture.write("etc/a.json", good + std::string(2U << 20U, ' '));
    CHECK(why() == "is larger than 1 MiB");
}
