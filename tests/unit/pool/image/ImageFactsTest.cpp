#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/Error.h"
#include "pool/image/Archive.h"
#include "pool/image/ImageFacts.h"
#include "pool/tar/Tar.h"
#include "tests/support/Support.h"
#include "tests/unit/pool/image/Scratch.h"

namespace hearth::pool::image {
namespace {

namespace fs = std::filesystem;

void program(const std::string& path) {
    write(path, "#!");
    fs::permissions(path, fs::perms::owner_all | fs::perms::others_exec | fs::perms::group_exec);
}

}  // namespace

TEST_CASE("an image's variables are taken, but not those that steer loaders", "[unit][image]") {
    const auto env = takeableEnv(
        {"PATH=/opt/bin:/bin", "LANG=de", "LD_PRELOAD=/x", "LD_LIBRARY_PATH=/y",
         "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=all", "PYTHONSTARTUP=/x",
         "BASH_ENV=/x", "NODE_OPTIONS=-r x", "GLIBC_TUNABLES=x", "HOME=/root", "HEARTH_IMAGE={}",
         "=x", "novalue", "PYTHON_VERSION=3.9", "EMPTY="});
    CHECK(env == std::vector<std::string>{"PATH=/opt/bin:/bin", "LANG=de", "PYTHON_VERSION=3.9",
                                          "EMPTY="});
    CHECK(takeableEnv({"BIG=" + std::string(40'000, 'x')}).empty());
}

TEST_CASE("the languages of an image are its programs, found from inside it", "[unit][image]") {
    if (::geteuid() != 0) return;  // needs a changed root
    const Scratch scratch;
    program(scratch / "root/opt/python/bin/python3.12");
    // Absolute links mean the image's own root, not the host's.
    fs::create_symlink("/opt/python/bin/python3.12", scratch / "root/opt/python/bin/python3");
    fs::create_directories(scratch / "root/usr/bin");
    fs::create_symlink("/opt/python", scratch / "root/usr/local");
    program(scratch / "root/usr/bin/node");
    write(scratch / "root/usr/bin/bash", "not executable");
    const ImageFacts facts =
        probeImage(scratch / "root", {{"PATH=/opt/python/bin"}, "/srv", "", {}, "", ""});
    CHECK(facts.workdir == "/srv");
    CHECK(facts.languages["python"]["run"] ==
          Json({"/opt/python/bin/python3", "/.hearth/python/run.py", "{file}"}));
    CHECK(facts.languages["python"]["zygote"] ==
          Json({"/opt/python/bin/python3", "/.hearth/python/zygote.py"}));
    CHECK(facts.languages["node"]["run"] ==
          Json({"/usr/bin/node", "--require=/.hearth/node/run.js", "{file}"}));
    CHECK(facts.languages.contains("javascript"));
    CHECK_FALSE(facts.languages.contains("bash"));
    CHECK_FALSE(facts.languages.contains("sh"));
    const ImageFacts again = decodeFacts(dumpJson(encodeFacts(facts)));
    CHECK(again.env == facts.env);
    CHECK(again.languages == facts.languages);

    write(scratch / "root/etc/hearth/languages.json", R"({"r":{"file":"main.r","run":["R"]}})");
    CHECK(probeImage(scratch / "root", {}).languages.size() == 1);
    write(scratch / "root/etc/hearth/languages.json",
          R"({"r":{"file":"main.r","run":["R"]},"Julia":{"file":"main.jl","run":["julia"]}})");
    const Error refused = hearth::test::errorOf([&] { probeImage(scratch / "root", {}); });
    CHECK(refused.code() == ErrorCode::InvalidArgument);
    CHECK(std::string(refused.what()).find("\"Julia\"") != std::string::npos);
    CHECK(refused.hint().find("a-z") != std::string::npos);
    fs::remove_all(scratch / "root");
    program(scratch / "root/static");
    CHECK(probeImage(scratch / "root", {}).languages.empty());
}

TEST_CASE("damaged facts are ignored", "[unit][image]") {
    for (const char* text : {"", "[", "[]", R"({"env":1,"workdir":[],"languages":"x"})"}) {
        const ImageFacts facts = decodeFacts(text);
        CHECK(facts.env.empty());
        CHECK(facts.workdir.empty());
        CHECK(facts.languages.empty());
    }
}

TEST_CASE("a file that is no archive of an image is recognized", "[unit][image]") {
    const Scratch scratch;
    write(scratch / "text", "hello");
    CHECK(inspectArchive(scratch / "text").kind == Archive::Kind::Other);
    write(scratch / "gz", "\x1f\x8b...");
    CHECK(inspectArchive(scratch / "gz").kind == Archive::Kind::Other);  // shorter than a block
    write(scratch / "long.gz", "\x1f\x8b" + std::string(1000, 'x'));
    CHECK(inspectArchive(scratch / "long.gz").kind == Archive::Kind::Compressed);
    CHECK_THROWS(inspectArchive(scratch / "none"));
}

TEST_CASE("an image's archive is recognized by its names, after files of any size",
          "[unit][image]") {
    const Scratch scratch;
    const auto entry = [](const std::string& name, const std::string& content) {
        tar::TarMember member;
        member.path = name;
        member.size = content.size();
        return tar::tarHeader(member, 0, 0) + content +
               std::string(tar::tarPadding(content.size()), '\0');
    };
    const std::string end(1024, '\0');
    const std::string layer = entry("blobs/" + std::string(150, 'l'), std::string(70'001, 'x'));
    write(scratch / "oci", layer + entry("./oci-layout", "{}") + end);
    CHECK(inspectArchive(scratch / "oci").kind == Archive::Kind::Oci);
    write(scratch / "docker", entry("oci-layout", "{}") + layer +
                                  entry("manifest.json", R"([{"RepoTags":["a:1","b:2"]},{}])") +
                                  end);
    const Archive docker = inspectArchive(scratch / "docker");
    CHECK(docker.kind == Archive::Kind::Docker);
    CHECK(docker.images == 2);
    CHECK(docker.tags == std::vector<std::string>{"a:1", "b:2"});
    write(scratch / "tar", layer + entry("manifest.json", "{") + end);
    CHECK(inspectArchive(scratch / "tar").kind == Archive::Kind::Other);
    write(scratch / "cut", layer.substr(0, 2'000));
    CHECK(inspectArchive(scratch / "cut").kind == Archive::Kind::Other);
}

}  // namespace hearth::pool::image
