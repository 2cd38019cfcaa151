#include "pool/agent/program/process/Scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace hearth::agent {

namespace {

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
    out_ = Fd(openat(dir_.get(), file.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
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
    unlinkat(base_.get(), name_.c_str(), AT_REMOVEDIR);
    out_.reset();
    dir_.reset();
    base_.reset();
}

}  // namespace hearth::agent
