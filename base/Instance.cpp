#include "base/Instance.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/Error.h"
#include "base/Ids.h"

namespace hearth {
namespace {

constexpr const char* kRunRoot = "/run/hearth";

/// Who is not root (only the docker runtime allows it) has a directory of this kind of his own.
std::string runRoot() {
    if (::geteuid() == 0) return kRunRoot;
    const char* own = std::getenv("XDG_RUNTIME_DIR");
    if (own == nullptr || *own != '/') {
        throw Error(ErrorCode::InvalidArgument, "XDG_RUNTIME_DIR names no directory")
            .hint(
                "log in by a session that sets it, set it to a directory on tmpfs that is only "
                "yours, or start as root");
    }
    return std::string(own) + "/hearth";
}
constexpr std::size_t kNameDigits = 12;

void makeDirectory(const std::string& path, mode_t mode) {
    if (::mkdir(path.c_str(), mode) != 0) {
        if (errno != EEXIST) throwErrno("mkdir", path);
        return;
    }
    if (::chmod(path.c_str(), mode) != 0) throwErrno("chmod", path);  // mkdir obeys the umask
}

}  // namespace

Instance openInstance(const std::string& data_dir) {
    std::filesystem::create_directories(std::filesystem::path(data_dir).parent_path());
    // Others may pass through: inside a user namespace root is a stranger on the host and must
    // reach the images below.
    makeDirectory(data_dir, 0711);
    Instance instance;
    instance.data_dir = std::filesystem::canonical(data_dir).string();
    instance.name = toHex(sha256(instance.data_dir)).substr(0, kNameDigits);
    const std::string root = runRoot();
    makeDirectory(root, 0755);
    instance.run_dir = root + "/" + instance.name;
    makeDirectory(instance.run_dir, 0755);
    return instance;
}

void requirePassable(const Instance& instance) {
    for (std::filesystem::path at = instance.data_dir; !at.empty(); at = at.parent_path()) {
        struct stat st {};
        if (::stat(at.c_str(), &st) != 0) throwErrno("stat", at.string());
        if ((st.st_mode & S_IXOTH) == 0) {
            throw Error(ErrorCode::InvalidArgument,
                        "the folder " + at.string() + " of the data directory lets nobody pass")
                .hint("chmod o+x " + at.string() +
                      ", or choose another --data-dir: neither the server nor the sandboxes are "
                      "root");
        }
        if (at == at.root_path()) return;
    }
}

Fd lockInstance(const Instance& instance) {
    const std::string path = instance.run_dir + "/lock";
    Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) throwErrno("open", path);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) throwErrno("flock", path);
        throw Error(ErrorCode::Conflict, "another hearth serve uses this data directory")
            .hint("stop it first, or choose another one with --data-dir");
    }
    return fd;
}

}  // namespace hearth
