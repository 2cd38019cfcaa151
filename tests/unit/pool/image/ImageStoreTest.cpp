#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/Digest.h"
#include "base/Error.h"
#include "pool/image/ImageStore.h"
#include "pool/image/RootfsTree.h"
#include "tests/unit/pool/image/Scratch.h"

namespace hearth::pool::image {
namespace {

namespace fs = std::filesystem;

/// Writes the index of a layout.
void layout(const Scratch& scratch, const std::string& name, const std::string& index) {
    write(scratch / ("images/" + name + "/index.json"), index);
}

/// Puts a manifest into the layout. Returns its digest.
std::string manifest(const Scratch& scratch, const std::string& name, const std::string& text) {
    const std::string hex = toHex(sha256(text));
    write(scratch / ("images/" + name + "/blobs/sha256/" + hex), text);
    return "sha256:" + hex;
}

}  // namespace

TEST_CASE("an image is known by the digest of its manifest", "[unit][image]") {
    const Scratch scratch;
    const ImageStore store(scratch.path());
    const std::string digest = manifest(scratch, "one", "{}");
    layout(scratch, "one", R"({"manifests":[{"digest":")" + digest + R"("}]})");
    CHECK(store.digestOf("one") == digest);
    CHECK_FALSE(store.rootfs(digest));
    const std::string tree = scratch / ("rootfs/" + digest.substr(7));
    fs::create_directories(tree);
    CHECK_FALSE(store.rootfs(digest));  // an empty tree is not an unpacked image
    for (const char* name : {"dev", "proc", "sys", "tmp", "workspace", ".hearth"}) {
        fs::create_directory(tree + "/" + name);
    }
    CHECK(store.rootfs(digest) == scratch / ("rootfs/" + digest.substr(7)));
    CHECK(store.prepare("one").digest == digest);  // it was done before
    layout(scratch, "broken", "{");
    const auto images = store.images();
    REQUIRE(images.size() == 1);
    CHECK(images[0].name == "one");
    CHECK(images[0].unpacked);
}

TEST_CASE("the tagged one of several manifests is used", "[unit][image]") {
    const Scratch scratch;
    const ImageStore store(scratch.path());
    const std::string old = manifest(scratch, "two", "old");
    const std::string now = manifest(scratch, "two", "now");
    const std::string tag = R"(,"annotations":{"org.opencontainers.image.ref.name":"latest"}})";
    layout(scratch, "two",
           R"({"manifests":[{"digest":")" + old + R"("},{"digest":")" + now + "\"" + tag + "]}");
    CHECK(store.digestOf("two") == now);
    layout(scratch, "two",
           R"({"manifests":[{"digest":")" + old + R"("},{"digest":")" + now + "\"}]}");
    CHECK_THROWS_AS(store.digestOf("two"), Error);
}

TEST_CASE("a missing image and a damaged one are different errors", "[unit][image]") {
    const Scratch scratch;
    const ImageStore store(scratch.path());
    const auto codeOf = [&](const std::string& name) {
        try {
            store.digestOf(name);
        } catch (const Error& e) {
            return e.code();
        }
        return ErrorCode::Internal;
    };
    CHECK(codeOf("none") == ErrorCode::NotFound);
    const std::string digest = manifest(scratch, "bad", "{}");
    layout(scratch, "bad", R"({"manifests":[{"digest":")" + digest + R"("}]})");
    write(scratch / ("images/bad/blobs/sha256/" + digest.substr(7)), "{ }");
    CHECK(codeOf("bad") == ErrorCode::InvalidArgument);
    for (const char* index : {"{}", "[]", R"({"manifests":[]})", R"({"manifests":[1]})",
                              R"({"manifests":[{"digest":"sha256:../../x"}]})"}) {
        layout(scratch, "odd", index);
        INFO(index);
        CHECK(codeOf("odd") == ErrorCode::InvalidArgument);
    }
}

TEST_CASE("links and files where sandboxes mount are refused", "[unit][image]") {
    for (const char* name : {"dev", "proc", "sys", "tmp", "workspace", ".hearth"}) {
        INFO(name);
        const Scratch linked;
        fs::create_directories(linked / "root");
        fs::create_symlink("/etc", linked / ("root/" + std::string(name)));
        CHECK_THROWS_AS(hardenRootfs(linked / "root"), Error);
        const Scratch file;
        write(file / ("root/" + std::string(name)), "x");
        CHECK_THROWS_AS(hardenRootfs(file / "root"), Error);
    }
}

TEST_CASE("special files outside /dev are refused", "[unit][image]") {
    const Scratch scratch;
    fs::create_directories(scratch / "root/var");
    REQUIRE(::mkfifo((scratch / "root/var/pipe").c_str(), 0600) == 0);
    CHECK_THROWS_AS(hardenRootfs(scratch / "root"), Error);
    fs::rename(scratch / "root/var/pipe", scratch / "root/pipe");
    fs::create_directories(scratch / "root/dev");
    fs::rename(scratch / "root/pipe", scratch / "root/dev/pipe");
    if (::geteuid() == 0) {
        hardenRootfs(scratch / "root");
        CHECK(fs::is_empty(scratch / "root/dev"));
    }
}

TEST_CASE("a tree becomes readable by all, writable by nobody, and powerless", "[unit][image]") {
    if (::geteuid() != 0) return;  // needs to change owners
    const Scratch scratch;
    write(scratch / "root/bin/su", "x");
    write(scratch / "root/etc/shadow", "x");
    write(scratch / "root/var/open", "x");
    fs::create_symlink("/nowhere", scratch / "root/link");
    REQUIRE(::chmod((scratch / "root/bin/su").c_str(), 04755) == 0);
    REQUIRE(::chmod((scratch / "root/etc/shadow").c_str(), 0640) == 0);
    REQUIRE(::chmod((scratch / "root/var/open").c_str(), 0666) == 0);
    REQUIRE(::chmod((scratch / "root/var").c_str(), 02777) == 0);
    REQUIRE(::chown((scratch / "root/var/open").c_str(), 1000, 1000) == 0);
    hardenRootfs(scratch / "root");
    CHECK(modeOf(scratch / "root/bin/su") == 0755);
    CHECK(modeOf(scratch / "root/etc/shadow") == 0644);
    CHECK(modeOf(scratch / "root/var/open") == 0644);
    CHECK(modeOf(scratch / "root/var") == 0755);
    CHECK(modeOf(scratch / "root/tmp") == 01777);
    CHECK(modeOf(scratch / "root/workspace") == 0700);
    struct stat status {};
    REQUIRE(::stat((scratch / "root/var/open").c_str(), &status) == 0);
    CHECK(status.st_uid == 0);
    for (const char* name : {"dev", "proc", "sys", "tmp", "workspace", ".hearth"}) {
        CHECK(fs::is_directory(scratch / ("root/" + std::string(name))));
    }
}

}  // namespace hearth::pool::image
