#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/Error.h"
#include "pool/image/RootfsLint.h"
#include "tests/unit/pool/image/Scratch.h"

namespace hearth::pool::image {
namespace {

namespace fs = std::filesystem;

/// Returns the linter's findings in the tree "root"; empty if there are none.
std::string verdict(const Scratch& scratch) {
    try {
        lintRootfs(scratch / "root");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::InvalidArgument);
        return e.what();
    }
    return {};
}

/// Makes an honest tree. A test then adds one fault to it.
void honest(const Scratch& scratch) {
    for (const char* name : {"dev", "proc", "sys", "tmp", "workspace", ".hearth", "usr/bin"}) {
        fs::create_directories(scratch / ("root/" + std::string(name)));
    }
    write(scratch / "root/usr/bin/busybox", "program");
    fs::create_hard_link(scratch / "root/usr/bin/busybox", scratch / "root/usr/bin/ls");
    fs::create_symlink("usr/bin", scratch / "root/bin");
    fs::create_symlink("/usr/bin/busybox", scratch / "root/usr/bin/sh");
    fs::create_symlink("../../etc/absent", scratch / "root/usr/bin/dangling");
    fs::create_symlink("/proc/self/mounts", scratch / "root/usr/mtab");
    write(scratch / "root/usr/Főtanúsítvány.crt", "x");
}

void bindSocket(const std::string& path) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address.sun_path);
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    ::close(fd);
}

}  // namespace

TEST_CASE("an honest tree passes, with links that dangle or are absolute", "[unit][image]") {
    const Scratch scratch;
    honest(scratch);
    CHECK(verdict(scratch) == "");
}

TEST_CASE("a tree without any of our directories passes", "[unit][image]") {
    const Scratch scratch;
    write(scratch / "root/program", "static");
    CHECK(verdict(scratch) == "");
}

TEST_CASE("each hostile tree is refused for its own reason", "[unit][image]") {
    using Craft = void (*)(const Scratch&);
    struct Hostile {
        const char* what;
        Craft craft;
        const char* reason;
    };
    const auto swap = [](const Scratch& s, const std::string& name, const std::string& target) {
        fs::remove_all(s / ("root/" + name));
        fs::create_symlink(target, s / ("root/" + name));
    };
    static const auto relink = swap;
    const std::vector<Hostile> trees{
        {"absolute link at /dev", [](const Scratch& s) { relink(s, "dev", "/host"); },
         "/dev is a link where sandboxes need a directory"},
        {"relative link at /proc", [](const Scratch& s) { relink(s, "proc", "usr"); },
         "/proc is a link where"},
        {"link at /sys", [](const Scratch& s) { relink(s, "sys", "/"); }, "/sys is a link where"},
        {"link at /tmp", [](const Scratch& s) { relink(s, "tmp", "/usr/bin"); },
         "/tmp is a link where"},
        {"link at /workspace", [](const Scratch& s) { relink(s, "workspace", "/proc/self/cwd"); },
         "/workspace is a link where"},
        {"link at /.hearth", [](const Scratch& s) { relink(s, ".hearth", "/usr"); },
         "/.hearth is a link where"},
        {"file at /tmp",
         [](const Scratch& s) {
             fs::remove_all(s / "root/tmp");
             write(s / "root/tmp", "x");
         },
         "/tmp must be a directory"},
        {"pipe", [](const Scratch& s) { REQUIRE(::mkfifo((s / "root/usr/p").c_str(), 0600) == 0); },
         "/usr/p is a pipe"},
        {"socket", [](const Scratch& s) { bindSocket(s / "root/usr/s"); }, "/usr/s is a socket"},
        {"hard link to a file outside",
         [](const Scratch& s) {
             write(s / "outside", "host");
             fs::create_hard_link(s / "outside", s / "root/usr/inside");
         },
         "/usr/inside is a hard link to a file outside"},
        {"link that climbs out",
         [](const Scratch& s) { fs::create_symlink("../../../etc", s / "root/usr/up"); },
         "/usr/up is a link that climbs out"},
        {"link that climbs out and comes back",
         [](const Scratch& s) { fs::create_symlink("bin/../../../root/usr", s / "root/usr/x"); },
         "/usr/x is a link that climbs out"},
        {"name with a newline",
         [](const Scratch& s) { write(s / "root/usr/a\nerror: forged", "x"); },
         "/usr/a?error: forged has control characters"},
        {"name that is not UTF-8", [](const Scratch& s) { write(s / "root/usr/\xff\xfe", "x"); },
         "has a name that is not UTF-8"},
        {"deletion left over", [](const Scratch& s) { write(s / "root/usr/.wh.passwd", ""); },
         "/usr/.wh.passwd is a deletion"},
        {"absurd depth",
         [](const Scratch& s) {
             std::string path = s / "root/usr";
             for (int i = 0; i < 130; ++i) path += "/d";
             fs::create_directories(path);
         },
         "lies too deep"},
    };
    for (const Hostile& tree : trees) {
        INFO(tree.what);
        const Scratch scratch;
        honest(scratch);
        tree.craft(scratch);
        CHECK_THAT(verdict(scratch), Catch::Contains(tree.reason));
    }
}

TEST_CASE("devices are refused, but for those that /dev covers", "[unit][image]") {
    const Scratch scratch;
    honest(scratch);
    if (::mknod((scratch / "root/dev/null").c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) return;
    CHECK(verdict(scratch) == "");
    REQUIRE(::mknod((scratch / "root/usr/disk").c_str(), S_IFBLK | 0660, makedev(8, 0)) == 0);
    CHECK_THAT(verdict(scratch), Catch::Contains("/usr/disk is a block device"));
    fs::remove(scratch / "root/usr/disk");
    REQUIRE(::mknod((scratch / "root/usr/mem").c_str(), S_IFCHR | 0660, makedev(1, 1)) == 0);
    CHECK_THAT(verdict(scratch), Catch::Contains("/usr/mem is a character device"));
}

}  // namespace hearth::pool::image
