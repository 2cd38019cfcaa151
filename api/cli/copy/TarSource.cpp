#include "api/cli/copy/TarSource.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/Error.h"

namespace hearth::cli {
namespace fs = std::filesystem;

TarSource::TarSource(const fs::path& directory, bool follow,
                     std::function<void(const std::string&, const std::string&)> left_out)
    : follow_(follow), left_out_(std::move(left_out)) {
    openDirectory(directory, "");
}

void TarSource::openDirectory(const fs::path& directory, const std::string& name) {
    struct stat told {};
    if (::stat(directory.c_str(), &told) != 0) throwErrno("stat", directory.string());
    const std::pair<std::uint64_t, std::uint64_t> id{told.st_dev, told.st_ino};
    if (std::ranges::find(inside_, id) != inside_.end()) {
        left_out_(name, "leads back to a directory that it is in");
        return;
    }
    std::error_code error;
    fs::directory_iterator entries(directory, error);
    if (error && name.empty()) throw std::system_error(error, "read " + directory.string());
    if (error) return unreadable(name, error.value());
    levels_.push_back({std::move(entries), name});
    inside_.push_back(id);
}

void TarSource::unreadable(const std::string& name, int error) {
    left_out_(name, "cannot be read: " + std::generic_category().message(error));
}

std::size_t TarSource::read(char* out, std::size_t size) {
    while (true) {
        const std::size_t count = tar_.read(out, size);
        if (count > 0 || ended_) return count;
        next();
    }
}

void TarSource::next() {
    if (levels_.empty()) {
        tar_.end();
        ended_ = true;
        return;
    }
    Level& level = levels_.back();
    if (level.at == fs::directory_iterator()) {
        levels_.pop_back();
        inside_.pop_back();
        return;
    }
    const fs::path path = level.at->path();
    const std::string own = path.filename().string();
    const std::string name = level.name.empty() ? own : level.name + "/" + own;
    ++level.at;
    add(path, name);
}

void TarSource::add(const fs::path& path, const std::string& name) {
    struct stat told {};
    if ((follow_ ? ::stat(path.c_str(), &told) : ::lstat(path.c_str(), &told)) != 0) {
        if (errno != ENOENT) return unreadable(name, errno);
        left_out_(name, follow_ ? "leads nowhere" : "went away");
        return;
    }
    TarEntry entry{.name = name, .mode = told.st_mode & 0777U, .modified = told.st_mtim.tv_sec};
    if (S_ISDIR(told.st_mode)) {
        entry.type = TarEntry::Type::Directory;
        tar_.add(std::move(entry));
        openDirectory(path, name);
        return;
    }
    if (S_ISLNK(told.st_mode)) {
        entry.type = TarEntry::Type::Symlink;
        entry.target = fs::read_symlink(path).string();
        tar_.add(std::move(entry));
        return;
    }
    if (!S_ISREG(told.st_mode)) {
        left_out_(name, "is neither a file nor a directory");
        return;
    }
    Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follow_ ? 0 : O_NOFOLLOW)));
    if (!file) return unreadable(name, errno);
    if (::fstat(file.get(), &told) != 0) throwErrno("stat", path.string());
    if (!S_ISREG(told.st_mode)) throw Error(ErrorCode::Conflict, name + " changed meanwhile");
    entry.size = static_cast<std::uint64_t>(told.st_size);
    tar_.add(entry, std::move(file), path.string());
    ++files_;
}

}  // namespace hearth::cli
