#include "base/host/Instance.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "base/Digest.h"
#include "base/Error.h"
#include "base/Ids.h"

namespace hearth {
namespace {

constexpr const char* kRunRoot = "/run/hearth";

/// A server without root (only with the docker runtime) has its own directory of this kind.
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
constexpr const char* kLock = "lock";
constexpr const char* kLauncherLock = "launcher.lock";
/// Stands between the name of a run_dir and random digits while the run_dir is removed.
constexpr const char* kGoing = ".going-";
constexpr int kLockTries = 20;
constexpr int kLockTryMs = 10;
/// A server that is just starting has made its folder and does not hold the lock yet.
constexpr std::time_t kUntouchedSeconds = 60;

void makeDirectory(const std::string& path, mode_t mode) {
    if (::mkdir(path.c_str(), mode) != 0) {
        if (errno != EEXIST) throwErrno("mkdir", path);
        return;
    }
    // mkdir obeys the umask. The directory may be gone again: its user will notice.
    if (::chmod(path.c_str(), mode) != 0 && errno != ENOENT) throwErrno("chmod", path);
}

[[noreturn]] void refuseDataDir(const std::string& path, const std::string& what,
                                const std::error_code& why) {
    const bool full = why == std::errc::no_space_on_device;
    throw Error(
        full ? ErrorCode::DiskFull : ErrorCode::InvalidArgument,
        "the data directory " + path + " (--data-dir) cannot be " + what + ": " + why.message())
        .hint(full ? "make room there, or choose another one with --data-dir"
                   : "choose another one with --data-dir, on a disk that can be written, such as "
                     "/var/lib/hearth");
}

/// True if the locked file is still the one that other processes would lock.
bool isStill(const Fd& fd, const std::string& path) {
    struct stat locked {};
    struct stat there {};
    if (::fstat(fd.get(), &locked) != 0) throwErrno("stat", path);
    return ::stat(path.c_str(), &there) == 0 && locked.st_dev == there.st_dev &&
           locked.st_ino == there.st_ino;
}

/// True if only empty folders, locks, a note and an empty table of marks are there.
bool lifeless(const std::string& run_dir) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(run_dir)) {
        const std::string name = entry.path().lexically_relative(run_dir).string();
        if (entry.is_symlink() || (!entry.is_directory() && !entry.is_regular_file())) return false;
        if (entry.is_directory() || name == kLock || name == kLauncherLock ||
            name.starts_with("runtime-version")) {
            continue;
        }
        if (name != "marks/claimed") return false;
        std::ifstream marks(entry.path(), std::ios::binary);
        if (!std::all_of(std::istreambuf_iterator<char>(marks), {},
                         [](char c) { return c == '\0'; })) {
            return false;
        }
    }
    return true;
}

}  // namespace

Instance openInstance(const std::string& data_dir) {
    try {
        std::filesystem::create_directories(std::filesystem::path(data_dir).parent_path());
        // Other users may pass through: inside a user namespace root is a stranger on the host and
        // must reach the images below.
        makeDirectory(data_dir, 0711);
    } catch (const std::system_error& e) {
        refuseDataDir(data_dir, "made", e.code());
    }
    Instance instance;
    instance.data_dir = std::filesystem::canonical(data_dir).string();
    instance.name = toHex(sha256(instance.data_dir)).substr(0, kNameDigits);
    const std::string root = runRoot();
    makeDirectory(root, 0755);
    instance.run_dir = root + "/" + instance.name;
    return instance;
}

void requireWritable(const Instance& instance) {
    std::string probe = instance.data_dir + "/.probe-XXXXXX";
    if (::mkdtemp(probe.data()) == nullptr) {
        // A full disk must not stop a server from starting: it takes over the running sandboxes.
        if (errno == ENOSPC || errno == EDQUOT) return;
        refuseDataDir(instance.data_dir, "written", {errno, std::generic_category()});
    }
    if (::rmdir(probe.c_str()) != 0) throwErrno("rmdir", probe);
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
    const std::string path = instance.run_dir + "/" + kLock;
    for (int patience = kLockTries;; --patience) {
        makeDirectory(instance.run_dir, 0755);
        Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!fd && errno != ENOENT) throwErrno("open", path);
        if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
            if (isStill(fd, path)) return fd;
        } else if (fd && errno != EWOULDBLOCK) {
            throwErrno("flock", path);
        }
        if (patience == 0) {
            throw Error(ErrorCode::Conflict, "another hearth serve uses this data directory")
                .hint("stop it first, or choose another one with --data-dir");
        }
        ::poll(nullptr, 0, kLockTryMs);  // the remover of the folder holds the lock briefly
    }
}

bool removeDeadRunDir(const std::string& run_dir) {
    std::vector<Fd> locks;
    // The server's lock is created if missing, so that no server can take it meanwhile.
    for (const auto& [name, make] : {std::pair(kLock, O_CREAT), std::pair(kLauncherLock, 0)}) {
        const std::string path = run_dir + "/" + name;
        Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | make, 0600));
        if (!fd && errno == ENOENT) {
            if (make != 0) return false;  // there is no such folder
            continue;
        }
        if (!fd) throwErrno("open", path);
        if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || !isStill(fd, path)) return false;
        locks.push_back(std::move(fd));
    }
    if (!lifeless(run_dir)) return false;
    // Renamed in one step: a server that starts meanwhile makes its own and never works in this.
    const std::string going = run_dir + kGoing + newId("");
    std::filesystem::rename(run_dir, going);
    std::error_code left;  // another start may be removing it as well, or removes it later
    std::filesystem::remove_all(going, left);
    return true;
}

void removeDeadRunDirs(const Instance& own) {
    const std::filesystem::path run_dir(own.run_dir);
    std::error_code unknown;
    for (const auto& entry : std::filesystem::directory_iterator(run_dir.parent_path(), unknown)) {
        const std::string name = entry.path().filename().string();
        const bool going = name.find(kGoing) == kNameDigits;
        const bool ours = (going || name.size() == kNameDigits) &&
                          name.find_first_not_of("0123456789abcdef") >= kNameDigits;
        struct stat st {};
        if (!ours || name == own.name || ::lstat(entry.path().c_str(), &st) != 0 ||
            !S_ISDIR(st.st_mode) || ::time(nullptr) - st.st_mtime < kUntouchedSeconds) {
            continue;
        }
        try {
            if (going) {
                std::filesystem::remove_all(entry.path());
            } else {
                removeDeadRunDir(entry.path().string());
            }
        } catch (const std::system_error&) {
            continue;  // another user's, or just being removed
        }
    }
}

}  // namespace hearth
