#include "pool/agent/program/process/Scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hearth::agent {

namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Fd makeDirectory(int parent, const char* name) {
    if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST) return Fd();
    Fd dir(openat(parent, name, kDirectory));
    if (dir) fchmod(dir.get(), 0700);
    return dir;
}

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

}  // namespace

bool Scratch::create(std::string_view id, const std::string& file, std::string_view code) {
    const TenantFiles as_tenant(settings_);
    const Fd tmp(open(settings_.tmp.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!tmp) return false;
    base_ = makeDirectory(tmp.get(), ".hearth");
    if (!base_) return false;
    id_ = id;
    dir_ = makeDirectory(base_.get(), id_.c_str());
    if (!dir_) return false;
    path_ = settings_.tmp + "/.hearth/" + id_;
    const Fd out(openat(dir_.get(), file.c_str(),
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!out) return false;
    while (!code.empty()) {
        const ssize_t n = write(out.get(), code.data(), code.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        code.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

void Scratch::remove() noexcept {
    if (!dir_) return;
    const TenantFiles as_tenant(settings_);
    int budget = 256;
    empty(dir_.get(), 3, budget);
    unlinkat(base_.get(), id_.c_str(), AT_REMOVEDIR);
    dir_.reset();
    base_.reset();
}

}  // namespace hearth::agent
