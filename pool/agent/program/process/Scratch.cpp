#include "pool/agent/program/process/Scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace hearth::agent {

namespace {

/// A tenant that refills the folder for ever is given up after this time.
constexpr std::int64_t kSweepNs = 10'000'000'000;
constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// Empties a directory with at most `budget` entries and four levels.
void empty(int dir, int depth, int& budget) {
    const int copy = openat(dir, ".", kDirectory);
    DIR* list = copy >= 0 ? fdopendir(copy) : nullptr;
    if (list == nullptr) return;
    while (const dirent* entry = readdir(list)) {
        if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
        if (--budget < 0) break;
        if (unlinkat(dir, entry->d_name, 0) == 0 || depth == 0) continue;
        const Fd below(openat(dir, entry->d_name, kDirectory));
        if (below) empty(below.get(), depth - 1, budget);
        unlinkat(dir, entry->d_name, AT_REMOVEDIR);
    }
    closedir(list);
}

/// Opens a folder of the tenant, after it has made it one that can be emptied.
Fd openFolder(int dir, const char* name) {
    const Fd place(openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!place) return Fd();
    char path[64];  // leads to the opened folder itself: a name might lead elsewhere by now
    std::snprintf(path, sizeof(path), "/proc/self/fd/%d", place.get());
    chmod(path, S_IRWXU);
    return Fd(openat(place.get(), ".", kDirectory));
}

/// Empties one folder of any size and depth, until a time. In a child of a program with threads, so
/// it allocates nothing.
class Sweep {
public:
    Sweep(int top, std::int64_t until_ns) : top_(top), until_ns_(until_ns), number_(until_ns) {}

    void run() {
        while (empty(top_, kLevels)) continue;
    }

private:
    static constexpr int kLevels = 32;  ///< each holds a descriptor

    /// Returns true if anything has changed, so that another look is worth it.
    bool empty(int dir, int levels) {
        alignas(dirent64) char entries[2'048];
        bool changed = false;
        lseek(dir, 0, SEEK_SET);
        while (nowNs() < until_ns_) {
            const long n = syscall(SYS_getdents64, dir, entries, sizeof(entries));
            if (n <= 0) return changed;
            for (long at = 0; at < n;) {
                const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
                at += entry->d_reclen;
                const char* name = entry->d_name;
                if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) continue;
                changed |= remove(dir, name, levels);
            }
        }
        return false;
    }

    bool remove(int dir, const char* name, int levels) {
        if (unlinkat(dir, name, 0) == 0 || unlinkat(dir, name, AT_REMOVEDIR) == 0) return true;
        const Fd below = openFolder(dir, name);
        if (!below) return false;
        if (levels == 0) return moveUp(dir, name);
        const bool changed = empty(below.get(), levels - 1);
        return unlinkat(dir, name, AT_REMOVEDIR) == 0 || changed;
    }

    bool moveUp(int dir, const char* name) {
        char free[32];
        std::snprintf(free, sizeof(free), ".%lld", static_cast<long long>(++number_));
        return renameat(dir, name, top_, free) == 0;
    }

    const int top_;
    const std::int64_t until_ns_;
    std::int64_t number_;
};

/// Closes every descriptor but these two.
void keepOnly(int one, int other) {
    const auto low = static_cast<unsigned>(std::min(one, other));
    const auto high = static_cast<unsigned>(std::max(one, other));
    if (low > 0) syscall(SYS_close_range, 0U, low - 1, 0U);
    if (high > low + 1) syscall(SYS_close_range, low + 1, high - 1, 0U);
    syscall(SYS_close_range, high + 1, ~0U, 0U);
}

/// Removes a folder of `base` in a process of its own, which the agent reaps as any other.
void removeApart(const Settings& settings, int base, int dir, const char* name) {
    if (fork() != 0) return;
    keepOnly(base, dir);  // no pipe and no connection stays open for it
    {
        const TenantFiles as_tenant(settings);
        Sweep(dir, nowNs() + kSweepNs).run();
    }
    unlinkat(base, name, AT_REMOVEDIR);
    _exit(0);
}

}  // namespace

int Scratch::create(std::string_view name, const std::string& file, std::string_view code) {
    const int error = prepare(name, file);
    return error != 0 ? error : write(code);
}

int Scratch::prepare(std::string_view name, const std::string& file) {
    base_ = Fd(open(settings_.run.c_str(), kDirectory));
    if (!base_) return errno;
    name_ = name;
    if (mkdirat(base_.get(), name_.c_str(), 0700) != 0 && errno != EEXIST) return errno;
    dir_ = Fd(openat(base_.get(), name_.c_str(), kDirectory));
    // Sticky as /tmp: the folder stays the agent's, and tenants make files in it.
    if (!dir_ || fchmod(dir_.get(), S_ISVTX | S_IRWXU | S_IRWXG | S_IRWXO) != 0) return errno;
    file_ = settings_.run + "/" + name_ + "/" + file;
    const TenantFiles as_tenant(settings_);
    out_ = Fd(openat(dir_.get(), file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     0600));
    return out_ ? 0 : errno;
}

int Scratch::write(std::string_view code) {
    const Fd out = std::move(out_);
    struct stat st {};
    if (fstat(out.get(), &st) != 0) return errno;
    if (st.st_nlink == 0) return ENOENT;
    while (!code.empty()) {
        const ssize_t n = ::write(out.get(), code.data(), code.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? errno : ENOSPC;
        code.remove_prefix(static_cast<std::size_t>(n));
    }
    return 0;
}

void Scratch::remove() noexcept {
    if (!dir_) return;
    int budget = 256;
    {
        const TenantFiles as_tenant(settings_);  // only their owner empties a tenant's folders
        empty(dir_.get(), 3, budget);
    }
    if (unlinkat(base_.get(), name_.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) removeRest();
    out_.reset();
    dir_.reset();
    base_.reset();
}

void Scratch::removeRest() noexcept {
    static unsigned number = 0;
    // The dot keeps it apart from every execution's name: the next may have this one again.
    const std::string rest = name_ + "." + std::to_string(++number);
    if (renameat(base_.get(), name_.c_str(), base_.get(), rest.c_str()) != 0) return;
    removeApart(settings_, base_.get(), dir_.get(), rest.c_str());
}

}  // namespace hearth::agent
