#include "pool/launcher/gpu/GpuParts.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/Error.h"
#include "pool/launcher/gpu/TrustedProgram.h"

namespace hearth::pool::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDev = "/dev/";
/// Every sandbox's /dev already has these.
constexpr std::array<std::string_view, 13> kOwnNodes{"null", "zero", "full",  "random", "urandom",
                                                     "tty",  "fd",   "stdin", "stdout", "stderr",
                                                     "ptmx", "pts",  "shm"};
constexpr std::array<std::string_view, 6> kOwnPlaces{"/workspace", "/tmp", "/proc",
                                                     "/sys",       "/dev", "/.hearth"};
constexpr mode_t kReadWrite = 0666;

[[noreturn]] void cannot(const std::string& what, const std::string& why) {
    throw Error(ErrorCode::Unsupported,
                "the CDI edits of a GPU cannot be made: " + what + " " + why)
        .hint("as root: nvidia-ctk cdi generate, after each change of the driver");
}

bool isIn(std::string_view path, std::string_view place) {
    return path == place || (path.starts_with(place) && path[place.size()] == '/');
}

GpuNode nodeOf(const cdi::CdiNode& wanted) {
    const std::string what = "the device node " + wanted.path;
    if (!wanted.path.starts_with(kDev)) cannot(what, "is not below /dev");
    GpuNode node;
    node.name = wanted.path.substr(kDev.size());
    for (const std::string_view own : kOwnNodes) {
        if (isIn(node.name, own)) cannot(what, "is one that every sandbox has");
    }
    struct stat status {};
    const bool there = ::stat(wanted.host_path.c_str(), &status) == 0;
    const int error = errno;
    if (there && !S_ISCHR(status.st_mode)) {
        cannot(what, "is not a character device on this machine: " + wanted.host_path);
    }
    if (!there && (!wanted.major || wanted.type.empty())) {
        cannot(what, "is not on this machine: " + wanted.host_path + ": " + std::strerror(error));
    }
    node.major = wanted.major.value_or(::major(status.st_rdev));
    node.minor = wanted.minor.value_or(::minor(status.st_rdev));
    // NVIDIA's node numbers change with the driver; a node with the old ones is another device.
    if (there && status.st_rdev != ::makedev(node.major, node.minor)) {
        cannot(what, "is " + std::to_string(node.major) + ":" + std::to_string(node.minor) +
                         " in the CDI file, but " + wanted.host_path + " is " +
                         std::to_string(::major(status.st_rdev)) + ":" +
                         std::to_string(::minor(status.st_rdev)));
    }
    mode_t owner = 0;
    for (const char right : std::string_view("rw")) {
        if (wanted.permissions.find(right) == std::string::npos) continue;
        node.access += right;
        owner |= right == 'r' ? S_IRUSR : S_IWUSR;
    }
    node.mode = (wanted.mode.value_or(kReadWrite) & kReadWrite) | owner;
    return node;
}

cdi::CdiMount mountOf(cdi::CdiMount mount) {
    const std::string what = "the mount " + mount.container_path;
    const std::string_view own = ownPlaceOf(mount.container_path);
    if (!own.empty()) cannot(what, "is in " + std::string(own));
    std::error_code error;
    const fs::path real = fs::canonical(mount.host_path, error);
    if (error) cannot(what, "has no source: " + mount.host_path + ": " + error.message());
    const fs::file_status status = fs::status(real, error);
    const bool folder = fs::is_directory(status);
    if (!folder && !fs::is_regular_file(status) && !fs::is_socket(status)) {
        cannot(what, "is not of a file, folder or socket: " + mount.host_path);
    }
    mount.host_path = real;
    if (!folder) mount.recursive = false;
    return mount;
}

void checkMounts(const std::vector<cdi::CdiMount>& mounts) {
    for (const cdi::CdiMount& outer : mounts) {
        for (const cdi::CdiMount& inner : mounts) {
            if (&inner != &outer && isIn(inner.container_path, outer.container_path)) {
                cannot("the mount " + inner.container_path,
                       "is inside of the mount " + outer.container_path);
            }
        }
    }
}

void checkVariable(const std::string& variable) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    for (const std::string_view own : {"PATH", "HOME", "USER", "TMPDIR"}) {
        if (name == own) cannot("the variable " + std::string(name), "is set by Hearth");
    }
    if (name.starts_with("HEARTH_"))
        cannot("the variable " + std::string(name), "is reserved for Hearth");
}

cdi::CdiHook hookOf(cdi::CdiHook hook) {
    const std::string what =
        std::string("the ") + cdi::kHookPoints.of(hook.point) + " hook " + hook.path;
    // This hook would run a program, or libraries, of the image as the sandbox's root.
    if (hook.point == cdi::HookPoint::StartContainer) {
        cannot(what, "would run inside of the sandbox; no program but the agent is root there");
    }
    std::string program;
    if (const std::string why = distrustProgram(hook.path, 0, program); !why.empty()) {
        cannot(what, why);
    }
    if (hook.args.empty()) hook.args.push_back(hook.path);
    hook.path = program;
    hook.timeout_s = std::min(hook.timeout_s.value_or(kHookSeconds), kHookSeconds);
    return hook;
}

}  // namespace

std::string_view ownPlaceOf(std::string_view path) {
    for (const std::string_view own : kOwnPlaces) {
        if (isIn(path, own)) return own;
    }
    return {};
}

GpuParts gpuParts(const cdi::CdiEdits& edits) {
    GpuParts parts;
    for (const cdi::CdiNode& node : edits.nodes) parts.nodes.push_back(nodeOf(node));
    for (const GpuNode& outer : parts.nodes) {
        for (const GpuNode& inner : parts.nodes) {
            if (&inner != &outer && isIn(inner.name, outer.name)) {
                cannot("the device node /dev/" + inner.name, "is below another one");
            }
        }
    }
    for (const cdi::CdiMount& mount : edits.mounts) parts.mounts.push_back(mountOf(mount));
    std::ranges::sort(parts.mounts, {}, &cdi::CdiMount::container_path);
    checkMounts(parts.mounts);
    for (const std::string& variable : edits.env) checkVariable(variable);
    parts.env = edits.env;
    for (const cdi::CdiHook& hook : edits.hooks) parts.hooks.push_back(hookOf(hook));
    return parts;
}

}  // namespace hearth::pool::launcher
