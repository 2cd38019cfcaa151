#include "api/serve/StateRepair.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <string_view>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/sys/Files.h"

namespace hearth::program {
namespace {

constexpr std::array<std::string_view, 7> kFiles{"key",       "had-tokens",    "revoked-tokens",
                                                 "hearth.db", "hearth.db-wal", "hearth.db-shm",
                                                 "claimed"};

bool isInTheWay(const std::string& path, std::string_view name) {
    if (std::find(kFiles.begin(), kFiles.end(), name) == kFiles.end()) return false;
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return false;
    if (S_ISDIR(status.st_mode)) return true;
    return S_ISLNK(status.st_mode) && ::stat(path.c_str(), &status) != 0 && errno == ENOENT;
}

void setAside(const std::string& path) {
    const std::string aside = path + ".damaged-" + std::to_string(std::time(nullptr));
    if (::rename(path.c_str(), aside.c_str()) != 0) throwErrno("rename", path);
}

void giveTo(const std::string& path, const controller::Account& account) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    // The account may write to the folder, so a file with two names could be another user's.
    if (status.st_nlink != 1 || status.st_uid == account.uid) return;
    if (::fchown(file.get(), account.uid, account.gid) != 0) throwErrno("chown", path);
}

}  // namespace

void repairState(const std::string& folder, const controller::Account& account) {
    for (const std::string& name : sys::listDirectory(folder)) {
        const std::string path = folder + "/" + name;
        if (isInTheWay(path, name)) {
            setAside(path);
        } else {
            giveTo(path, account);
        }
    }
}

}  // namespace hearth::program
