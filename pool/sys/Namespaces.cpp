#include "pool/sys/Namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/Error.h"
#include "base/Fd.h"

namespace hearth::sys {

void enterPrivateMounts() {
    if (::unshare(CLONE_NEWNS) != 0) throwErrno("unshare", "mount namespace");
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) throwErrno("mount", "/");
}

void mount(const std::string& source, const std::string& target, const std::string& type,
           unsigned long flags, const std::string& data) {
    if (::mount(source.c_str(), target.c_str(), type.c_str(), flags, data.c_str()) != 0) {
        throwErrno("mount", target);
    }
}

void unmount(const std::string& target) {
    if (::umount2(target.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL &&
        errno != ENOENT) {
        throwErrno("umount", target);
    }
}

void writeUserLimits(pid_t pid, const std::vector<std::pair<std::string, std::string>>& values) {
    const std::string path = "/proc/" + std::to_string(pid) + "/ns/user";
    const Fd ns(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!ns) throwErrno("open", path);
    // Only a process with one thread may change its user namespace. After fork() the thread
    // sanitizer starts a thread in the child; _Fork() runs no handlers, and the child needs none.
    const pid_t child = ::_Fork();
    if (child < 0) throwErrno("fork");
    if (child == 0) {
        if (::setns(ns.get(), CLONE_NEWUSER) != 0) ::_exit(errno);
        for (const auto& [name, value] : values) {
            const Fd fd(::open(("/proc/sys/user/" + name).c_str(), O_WRONLY | O_CLOEXEC));
            if (!fd && errno == ENOENT) continue;
            if (!fd || ::write(fd.get(), value.data(), value.size()) < 0) ::_exit(errno);
        }
        ::_exit(0);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) throwErrno("waitpid");
    }
    if (!WIFEXITED(status)) throwErrno(EINTR, "write limits of user namespace");
    if (WEXITSTATUS(status) != 0) throwErrno(WEXITSTATUS(status), "write limits of user namespace");
}

}  // namespace hearth::sys
