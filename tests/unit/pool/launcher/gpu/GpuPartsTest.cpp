#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/Error.h"
#include "pool/launcher/gpu/GpuParts.h"
#include "pool/launcher/gpu/TrustedProgram.h"
#include "pool/sys/Files.h"

using namespace hearth;
using namespace hearth::pool;
using namespace hearth::pool::launcher;

namespace {

GpuNode nodeFrom(cdi::CdiNode node) {
    cdi::CdiEdits edits;
    edits.nodes = {std::move(node)};
    return gpuParts(edits).nodes.at(0);
}

std::string refusedParts(const cdi::CdiEdits& edits) {
    try {
        gpuParts(edits);
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::Unsupported);
        CHECK_FALSE(e.hint().empty());
        return e.what();
    }
    return "accepted";
}

std::string refusedNode(cdi::CdiNode node) {
    cdi::CdiEdits edits;
    edits.nodes = {std::move(node)};
    return refusedParts(edits);
}

std::string refusedMount(const std::string& from, const std::string& to) {
    cdi::CdiEdits edits;
    edits.mounts = {{from, to}};
    return refusedParts(edits);
}

bool holds(const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("numbers of a GPU's node are read from this machine, and never m is allowed",
          "[unit][gpu]") {
    CHECK(nodeFrom({"/dev/nvidia0", "/dev/zero"}) == GpuNode{"nvidia0", 1, 5, 0666, "rw"});
    CHECK(nodeFrom({"/dev/nvidia-caps/nvidia-cap1", "/dev/null", "c", 1, 3, 0400, "rm"}) ==
          GpuNode{"nvidia-caps/nvidia-cap1", 1, 3, 0400, "r"});
    // The tenant must be able to open the node, whatever the file's mode allows its owner.
    CHECK(nodeFrom({"/dev/a", "/dev/zero", "c", 1, 5, 0440, "rw"}).mode == 0640);
    // As CDI says, a node with type and numbers need not exist on the host.
    CHECK(nodeFrom({"/dev/nvidia9", "/dev/not-there", "c", 195, 9}) ==
          GpuNode{"nvidia9", 195, 9, 0666, "rw"});
}

TEST_CASE("a GPU's node that differs from its file is refused", "[unit][gpu]") {
    CHECK(holds(refusedNode({"/dev/nvidia9", "/dev/not-there"}), "is not on this machine"));
    CHECK(holds(refusedNode({"/dev/nvidia0", "/dev/zero", "c", 195, 0}),
                "is 195:0 in the CDI file, but /dev/zero is 1:5"));
    CHECK(holds(refusedNode({"/dev/nvidia0", "/dev"}), "is not a character device"));
    CHECK(holds(refusedNode({"/opt/nvidia0", "/dev/zero"}), "is not below /dev"));
    for (const char* own : {"/dev/null", "/dev/shm/x", "/dev/pts/0", "/dev/tty"}) {
        CHECK(holds(refusedNode({own, "/dev/zero"}), "is one that every sandbox has"));
    }
    cdi::CdiEdits edits;
    edits.nodes = {{"/dev/a", "/dev/zero"}, {"/dev/a/b", "/dev/zero"}};
    CHECK(holds(refusedParts(edits), "/dev/a/b is below another one"));
}

TEST_CASE("a GPU's mount has a source, and takes no place of a sandbox's own", "[unit][gpu]") {
    for (const char* own :
         {"/workspace", "/workspace/x", "/tmp", "/proc/x", "/sys", "/dev/x", "/.hearth/agent"}) {
        CHECK(
            holds(refusedMount("/etc/passwd", own), "the mount " + std::string(own) + " is in /"));
    }
    CHECK(holds(refusedMount("/not/there", "/opt/x"), "has no source: /not/there"));
    CHECK(holds(refusedMount("/dev/zero", "/opt/x"), "is not of a file, folder or socket"));
    CHECK(refusedMount("/etc/passwd", "/tmpfs") == "accepted");
    cdi::CdiEdits edits;
    edits.mounts = {{"/etc/passwd", "/opt/x/y"}, {"/etc", "/opt/x", false, true, true}};
    CHECK(holds(refusedParts(edits), "/opt/x/y is inside of the mount /opt/x"));
    edits.mounts = {{"/etc/passwd", "/opt/y", false, true, true},
                    {"/etc", "/opt/x", true, true, true}};
    const GpuParts parts = gpuParts(edits);
    REQUIRE(parts.mounts.size() == 2);
    CHECK(parts.mounts[0].container_path == "/opt/x");
    CHECK(parts.mounts[0].recursive);
    CHECK_FALSE(parts.mounts[1].recursive);  // a file has nothing below it
}

TEST_CASE("a GPU sets no variable of Hearth's", "[unit][gpu]") {
    cdi::CdiEdits edits;
    for (const char* own : {"PATH=/x", "HOME=/x", "HEARTH_GPU={}"}) {
        edits.env = {own};
        CHECK(holds(refusedParts(edits), "the variable " + std::string(own).substr(0, 4)));
    }
    edits.env = {"LD_PRELOAD=/opt/gpu/lib.so", "NVIDIA_VISIBLE_DEVICES=void"};
    CHECK(gpuParts(edits).env == edits.env);
}

TEST_CASE("a GPU's hook is a program of root's, has an end, and never runs inside the sandbox",
          "[unit][gpu]") {
    cdi::CdiEdits edits;
    edits.hooks = {{cdi::HookPoint::StartContainer, "/bin/true", {}, {}, {}}};
    CHECK(holds(refusedParts(edits), "the startContainer hook /bin/true would run inside"));
    edits.hooks = {{cdi::HookPoint::CreateRuntime, "/not/there", {}, {}, {}}};
    CHECK(holds(refusedParts(edits), "the createRuntime hook /not/there is not on this machine"));
    edits.hooks = {{cdi::HookPoint::CreateContainer, "/bin/true", {}, {}, {}},
                   {cdi::HookPoint::Poststop, "/bin/true", {"x"}, {"A=1"}, 3000},
                   {cdi::HookPoint::Poststop, "/bin/true", {"x"}, {"A=1"}, 2}};
    const GpuParts parts = gpuParts(edits);
    REQUIRE(parts.hooks.size() == 3);
    CHECK(parts.hooks[0].path == std::filesystem::canonical("/bin/true").string());
    CHECK(parts.hooks[0].args == std::vector<std::string>{"/bin/true"});
    CHECK(parts.hooks[0].timeout_s == kHookSeconds);
    CHECK(parts.hooks[1].timeout_s == kHookSeconds);
    CHECK(parts.hooks[2].timeout_s == 2);
}

TEST_CASE("a program that somebody else could change is not trusted", "[unit][gpu]") {
    char path[] = "/tmp/hearth-trust-XXXXXX";
    REQUIRE(::mkdtemp(path) != nullptr);
    const std::string folder = path;
    const std::string file = folder + "/hook";
    sys::writeFile(file, "#!/bin/sh\n", 0755);
    std::string program;
    CHECK(distrustProgram(file, ::geteuid(), program).empty());  // /tmp is sticky
    CHECK(program == file);
    const auto why = [&] { return distrustProgram(file, ::geteuid(), program); };
    REQUIRE(::chmod(file.c_str(), 0775) == 0);
    CHECK(holds(why(), "hook may be written to by others"));
    REQUIRE(::chmod(file.c_str(), 0644) == 0);
    CHECK(holds(why(), "hook is no program"));
    REQUIRE(::chmod(file.c_str(), 0755) == 0);
    REQUIRE(::chmod(path, 0777) == 0);
    CHECK(holds(why(), folder + " may be written to by others"));
    REQUIRE(::chmod(path, 0755) == 0);
    std::filesystem::create_symlink(file, folder + "/link");
    CHECK(distrustProgram(folder + "/link", ::geteuid(), program).empty());
    CHECK(program == file);
    CHECK(holds(distrustProgram(folder, ::geteuid(), program), "is no program"));
    if (::geteuid() == 0) {
        REQUIRE(::chown(file.c_str(), 1234, 1234) == 0);
        CHECK(holds(why(), "hook belongs to user 1234"));
    }
    std::filesystem::remove_all(folder);
}
