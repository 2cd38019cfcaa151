#include "pool/agent/program/PodStart.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "base/Fd.h"
#include "pool/agent/program/Identity.h"

namespace hearth::agent {
namespace {

/// The deepest folder copied: drivers lie in folders of their own, with nothing below these.
constexpr int kDeepest = 4;

bool fail(const std::string& path) {
    std::fprintf(stderr, "hearth-agent: cannot copy %s: %s\n", path.c_str(), std::strerror(errno));
    return false;
}

bool copyFile(const std::string& from, const std::string& to, const struct stat& st) {
    const Fd in(open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    unlink(to.c_str());  // left by a start of this Pod that was cut short
    const Fd out(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!in || !out) return fail(from);
    for (off_t left = st.st_size; left > 0;) {
        const ssize_t n = sendfile(out.get(), in.get(), nullptr, static_cast<std::size_t>(left));
        if (n <= 0) return fail(from);
        left -= n;
    }
    return fchmod(out.get(), st.st_mode & 0555) == 0 || fail(to);
}

bool copyFolder(const std::string& from, const std::string& to, int depth) {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(from.c_str()), closedir);
    if (!folder || depth > kDeepest) return fail(from);
    while (const dirent* entry = readdir(folder.get())) {
        const std::string name = entry->d_name;
        if (name == "." || name == "..") continue;
        std::string source = from;
        source.append("/").append(name);
        std::string target = to;
        target.append("/").append(name);
        struct stat st {};
        if (lstat(source.c_str(), &st) != 0) return fail(source);
        if (S_ISDIR(st.st_mode)) {
            if (mkdir(target.c_str(), 0755) != 0 && errno != EEXIST) return fail(target);
            if (!copyFolder(source, target, depth + 1)) return false;
        } else if (S_ISREG(st.st_mode) && !copyFile(source, target, st)) {
            return false;
        }
    }
    return true;
}

}  // namespace

int beginPod(const char* inside, const char* identity, const char* told) {
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    std::string folder(self, length > 0 ? static_cast<std::size_t>(length) : 0);
    const std::size_t slash = folder.rfind('/');
    if (slash == std::string::npos || slash == 0) return 1;
    folder.resize(slash);
    if (!copyFolder(folder, inside, 0)) return 1;
    // The place of code is a volume that is mounted below this folder, which is read-only by then.
    const std::string run = std::string(inside) + "/run";
    if (mkdir(run.c_str(), 0755) != 0 && errno != EEXIST) return 1;
    return makeIdentity(identity, told);
}

}  // namespace hearth::agent
