#include "api/cli/TarSource.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/Error.h"
#include "pool/tar/Tar.h"

namespace hearth::cli {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kPiece = 256U << 10U;

[[noreturn]] void failed(const std::string& what, const std::string& name) {
    throw std::system_error(errno, std::generic_category(), what + " " + name);
}

}  // namespace

TarSource::TarSource(const fs::path& directory, bool follow,
                     std::function<void(const std::string&, const std::string&)> left_out)
    : follow_(follow), left_out_(std::move(left_out)) {
    openDirectory(directory, "");
}

void TarSource::openDirectory(const fs::path& directory, const std::string& name) {
    struct stat told {};
    if (::stat(directory.c_str(), &told) != 0) failed("stat", directory.string());
    const std::pair<std::uint64_t, std::uint64_t> id{told.st_dev, told.st_ino};
    if (std::ranges::find(inside_, id) != inside_.end()) {
        left_out_(name, "leads back to a directory that it is in");
        return;
    }
    levels_.push_back({fs::directory_iterator(directory), name});
    inside_.push_back(id);
}

std::size_t TarSource::read(char* out, std::size_t size) {
    while (taken_ == pending_.size() && !ended_) refill();
    const std::size_t count = std::min(size, pending_.size() - taken_);
    std::memcpy(out, pending_.data() + taken_, count);
    taken_ += count;
    return count;
}

void TarSource::refill() {
    pending_.clear();
    taken_ = 0;
    if (left_ == 0) {
        next();
        return;
    }
    pending_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left_, kPiece)));
    ssize_t got = 0;
    do {
        got = ::read(file_.get(), pending_.data(), pending_.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) failed("read", file_name_);
    if (got == 0) throw Error(ErrorCode::Conflict, file_name_ + " shrank while it was read");
    pending_.resize(static_cast<std::size_t>(got));
    left_ -= static_cast<std::uint64_t>(got);
    if (left_ == 0) {
        pending_.append(padding_, '\0');
        file_.reset();
    }
}

void TarSource::next() {
    if (levels_.empty()) {
        pending_.assign(2 * tar::TarReader::kBlock, '\0');
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
        if (errno != ENOENT) failed("stat", path.string());
        left_out_(name, follow_ ? "leads nowhere" : "went away");
        return;
    }
    tar::TarMember member;
    member.path = name;
    member.mode = told.st_mode & 0777U;
    member.modified = told.st_mtim.tv_sec;
    if (S_ISDIR(told.st_mode)) {
        member.type = tar::TarMember::Type::Directory;
        pending_ = tar::tarHeader(member, 0, 0);
        openDirectory(path, name);
        return;
    }
    if (S_ISLNK(told.st_mode)) {
        member.type = tar::TarMember::Type::Symlink;
        member.target = fs::read_symlink(path).string();
        pending_ = tar::tarHeader(member, 0, 0);
        return;
    }
    if (!S_ISREG(told.st_mode)) {
        left_out_(name, "is neither a file nor a directory");
        return;
    }
    file_ =
        Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follow_ ? 0 : O_NOFOLLOW)));
    if (!file_) failed("open", path.string());
    if (::fstat(file_.get(), &told) != 0) failed("stat", path.string());
    if (!S_ISREG(told.st_mode)) throw Error(ErrorCode::Conflict, name + " changed meanwhile");
    member.size = static_cast<std::uint64_t>(told.st_size);
    pending_ = tar::tarHeader(member, 0, 0);
    left_ = member.size;
    padding_ = tar::tarPadding(member.size);
    file_name_ = path.string();
    ++files_;
    if (left_ == 0) file_.reset();
}

}  // namespace hearth::cli
