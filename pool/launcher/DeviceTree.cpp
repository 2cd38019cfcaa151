#include "pool/launcher/DeviceTree.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/Error.h"
#include "pool/isolation/SandboxIdentity.h"
#include "pool/sys/Files.h"
#include "pool/sys/Namespaces.h"

namespace hearth::pool::launcher {
namespace {

struct Node {
    const char* name;
    unsigned major;
    unsigned minor;
};
constexpr std::array kNodes = std::to_array<Node>({{"null", 1, 3},
                                                   {"zero", 1, 5},
                                                   {"full", 1, 7},
                                                   {"random", 1, 8},
                                                   {"urandom", 1, 9},
                                                   {"tty", 5, 0}});

struct Link {
    const char* name;
    const char* target;
};
constexpr std::array kLinks = std::to_array<Link>({{"fd", "/proc/self/fd"},
                                                   {"stdin", "/proc/self/fd/0"},
                                                   {"stdout", "/proc/self/fd/1"},
                                                   {"stderr", "/proc/self/fd/2"},
                                                   {"ptmx", "pts/ptmx"}});

constexpr mode_t kEverybody = 0666;
constexpr std::size_t kInodes = 32;
constexpr std::size_t kInodesOfNode = 4;  // with the folders on the way to it
constexpr std::size_t kInodesOfHooks = 64;

void makeNode(const std::string& path, mode_t mode, unsigned major, unsigned minor) {
    if (::mknod(path.c_str(), S_IFCHR | mode, ::makedev(major, minor)) != 0) {
        throwErrno("mknod", path);
    }
    if (::chmod(path.c_str(), mode) != 0) throwErrno("chmod", path);
}

void own(const std::string& path, std::uint32_t uid) {
    if (::lchown(path.c_str(), uid, uid) != 0) throwErrno("chown", path);
}

void makeGpuNode(const std::string& at, const GpuNode& node, std::uint32_t uid_first) {
    for (std::size_t slash = node.name.find('/'); slash != std::string::npos;
         slash = node.name.find('/', slash + 1)) {
        const std::string folder = at + "/" + node.name.substr(0, slash);
        if (sys::makeDirectory(folder, 0755)) own(folder, uid_first);
    }
    const std::string path = at + "/" + node.name;
    makeNode(path, node.mode, node.major, node.minor);
    own(path, uid_first + kTenantUid);
}

}  // namespace

void mountDevices(const std::string& at, const std::vector<GpuNode>& gpus,
                  std::uint32_t uid_first) {
    std::size_t inodes = kInodes;
    if (!gpus.empty()) inodes += kInodesOfHooks + kInodesOfNode * gpus.size();
    sys::mount("dev", at, "tmpfs", MS_NOSUID | MS_NOEXEC,
               "mode=0755,size=64k,nr_inodes=" + std::to_string(inodes));
    for (const Node& node : kNodes) {
        makeNode(at + "/" + node.name, kEverybody, node.major, node.minor);
    }
    for (const GpuNode& node : gpus) makeGpuNode(at, node, uid_first);
    for (const Link& link : kLinks) {
        const std::string path = at + "/" + link.name;
        if (::symlink(link.target, path.c_str()) != 0) throwErrno("symlink", path);
    }
    sys::makeDirectory(at + "/pts", 0755);
    sys::makeDirectory(at + "/shm", 01777);  // runc gives its mount the mode of this folder
}

}  // namespace hearth::pool::launcher
