#include "pool/launcher/DeviceTree.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>

#include "base/Error.h"
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

}  // namespace

void mountDevices(const std::string& at) {
    sys::mount("dev", at, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k,nr_inodes=32");
    for (const Node& node : kNodes) {
        const std::string path = at + "/" + node.name;
        if (::mknod(path.c_str(), S_IFCHR | kEverybody, ::makedev(node.major, node.minor)) != 0) {
            throwErrno("mknod", path);
        }
        if (::chmod(path.c_str(), kEverybody) != 0) throwErrno("chmod", path);
    }
    for (const Link& link : kLinks) {
        const std::string path = at + "/" + link.name;
        if (::symlink(link.target, path.c_str()) != 0) throwErrno("symlink", path);
    }
    sys::makeDirectory(at + "/pts", 0755);
    sys::makeDirectory(at + "/shm", 01777);  // runc gives what it mounts the mode of what was there
}

}  // namespace hearth::pool::launcher
