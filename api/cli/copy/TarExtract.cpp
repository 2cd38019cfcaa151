#include "api/cli/copy/TarExtract.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "base/Error.h"
#include "base/Ids.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kMostHardLinkEnds = 1'000'000;

[[noreturn]] void failedAt(const std::string& what, const std::string& name) {
    throw std::system_error(errno, std::generic_category(), what + " " + tar::shownName(name));
}

[[noreturn]] void hostile(const std::string& name, const std::string& why) {
    throw Error(ErrorCode::InvalidArgument,
                "the archive's entry " + tar::shownName(name) + " " + why)
        .hint("Nothing was written outside the destination; entries before this one are there");
}

/// Splits a name into its parts; refuses parts that could lead elsewhere.
std::vector<std::string> partsOf(const std::string& path) {
    if (path.starts_with('/')) hostile(path, "has an absolute name");
    if (path.find('\0') != std::string::npos) hostile(path, "has a NUL byte in its name");
    std::vector<std::string> parts;
    for (std::size_t start = 0; start <= path.size();) {
        const std::size_t end = std::min(path.find('/', start), path.size());
        const std::string part = path.substr(start, end - start);
        start = end + 1;
        if (part.empty() || part == ".") continue;
        if (part == "..") hostile(path, "leads out by \"..\"");
        parts.push_back(part);
    }
    return parts;
}

/// The one normal form of `path`.
std::string plainName(const std::string& path) {
    std::string name;
    for (const std::string& part : partsOf(path)) name += "/" + part;
    return name;
}

Fd openDirectory(int at, const std::string& name) {
    return Fd(::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

}  // namespace

bool linkStaysInside(std::string_view target, std::size_t depth) {
    if (target.empty() || target.starts_with('/')) return false;
    bool named = false;
    std::size_t up = 0;
    while (!target.empty()) {
        const std::size_t end = std::min(target.find('/'), target.size());
        const std::string_view part = target.substr(0, end);
        target.remove_prefix(std::min(end + 1, target.size()));
        if (part.empty() || part == ".") continue;
        if (part != "..") {
            named = true;
        } else if (named || ++up > depth) {
            return false;
        }
    }
    return true;
}

TarExtract::TarExtract(int directory, LeftOut left_out)
    : top_(directory), left_out_(std::move(left_out)), reader_(*this), mask_(::umask(0)) {
    ::umask(mask_);
}

TarExtract::~TarExtract() {
    if (!temporary_.empty()) ::unlinkat(place_.directory.get(), temporary_.c_str(), 0);
}

void TarExtract::feed(std::string_view bytes) {
    if (!reader_.feed(bytes)) {
        throw Error(ErrorCode::InvalidArgument, "the archive is faulty: " + reader_.fault());
    }
}

void TarExtract::finish() {
    if (!reader_.finish()) {
        throw Error(ErrorCode::InvalidArgument, "the archive is faulty: " + reader_.fault())
            .hint("Copy again: the entries before the fault are there");
    }
}

TarExtract::Place TarExtract::placeOf(const std::string& path, bool make) {
    const std::vector<std::string> parts = partsOf(path);
    Place place{openDirectory(top_, "."), "", 0};
    if (!place.directory) failedAt("open", path);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i + 1 == parts.size()) {
            place.name = parts[i];
            break;
        }
        if (make && ::mkdirat(place.directory.get(), parts[i].c_str(), 0777) != 0 &&
            errno != EEXIST) {
            failedAt("mkdir", path);
        }
        Fd next = openDirectory(place.directory.get(), parts[i]);
        if (!next && (errno == ELOOP || errno == ENOTDIR)) {
            hostile(path, "goes through \"" + parts[i] + "\", which is not a directory");
        }
        if (!next) failedAt("open", path);
        place.directory = std::move(next);
        ++place.depth;
    }
    return place;
}

bool TarExtract::member(const tar::TarMember& member) {
    now_ = member;
    Place place = placeOf(member.path, true);
    switch (member.type) {
        case tar::TarMember::Type::Directory:
            makeDirectory(place, member);
            break;
        case tar::TarMember::Type::File:
            makeFile(std::move(place), member);
            break;
        case tar::TarMember::Type::Symlink:
            makeLink(place, member);
            break;
        case tar::TarMember::Type::Hardlink:
            makeHardLink(place, member);
            break;
    }
    return true;
}

void TarExtract::makeDirectory(const Place& place, const tar::TarMember& member) {
    if (place.name.empty()) return;
    const mode_t mode = (member.mode & 0777U) | 0700U;  // its entries must still be written
    if (::mkdirat(place.directory.get(), place.name.c_str(), mode) == 0) return;
    if (errno != EEXIST) failedAt("mkdir", member.path);
    if (!openDirectory(place.directory.get(), place.name)) {
        hostile(member.path, "is a directory, but something else has that name");
    }
}

void TarExtract::makeFile(Place place, const tar::TarMember& member) {
    if (place.name.empty()) hostile(member.path, "is a file without a name");
    place_ = std::move(place);
    const std::string temporary = ".hearth-" + newId("").substr(0, 16);
    file_ = Fd(::openat(place_.directory.get(), temporary.c_str(),
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file_) failedAt("create", member.path);
    temporary_ = temporary;
}

bool TarExtract::content(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) failedAt("write", now_.path);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

bool TarExtract::memberEnd() {
    if (now_.type != tar::TarMember::Type::File) return true;
    const timespec when{now_.modified, 0};
    const timespec times[2] = {when, when};
    ::futimens(file_.get(), times);  // a time that the file system cannot store is ignored
    if (::fchmod(file_.get(), now_.mode & 0777U & ~mask_) != 0) failedAt("chmod", now_.path);
    struct stat about {};
    if (::fstat(file_.get(), &about) != 0) failedAt("stat", now_.path);
    file_.reset();
    if (::renameat(place_.directory.get(), temporary_.c_str(), place_.directory.get(),
                   place_.name.c_str()) != 0) {
        failedAt("replace", now_.path);
    }
    temporary_.clear();
    const std::string name = plainName(now_.path);
    made_.erase(name);
    if (made_.size() < kMostHardLinkEnds) made_[name] = {about.st_dev, about.st_ino};
    ++files_;
    return true;
}

void TarExtract::makeLink(const Place& place, const tar::TarMember& member) {
    if (place.name.empty()) hostile(member.path, "is a link without a name");
    if (!linkStaysInside(member.target, place.depth)) {
        leaveOut(member.path, "is a link that may lead out: " + tar::shownName(member.target));
        return;
    }
    made_.erase(plainName(member.path));
    if (::symlinkat(member.target.c_str(), place.directory.get(), place.name.c_str()) == 0) return;
    if (errno == EEXIST) {
        if (::unlinkat(place.directory.get(), place.name.c_str(), 0) != 0) {
            failedAt("replace", member.path);
        }
        if (::symlinkat(member.target.c_str(), place.directory.get(), place.name.c_str()) == 0) {
            return;
        }
    }
    failedAt("link", member.path);
}

void TarExtract::makeHardLink(const Place& place, const tar::TarMember& member) {
    if (place.name.empty()) hostile(member.path, "is a link without a name");
    const auto made = made_.find(plainName(member.target));
    if (made == made_.end()) hostile(member.path, "is a link to something not in the archive");
    const Made file = made->second;
    const Place from = placeOf(member.target, false);
    // If the target is a symbolic link, a hard link to it could lead elsewhere than was checked.
    struct stat about {};
    if (::fstatat(from.directory.get(), from.name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
        failedAt("link", member.path);
    }
    if (!S_ISREG(about.st_mode) || about.st_dev != file.device || about.st_ino != file.inode) {
        hostile(member.path, "is a link to something not in the archive");
    }
    made_.erase(plainName(member.path));
    ::unlinkat(place.directory.get(), place.name.c_str(), 0);
    if (::linkat(from.directory.get(), from.name.c_str(), place.directory.get(), place.name.c_str(),
                 0) != 0) {
        failedAt("link", member.path);
    }
    ++files_;
}

void TarExtract::leaveOut(const std::string& name, const std::string& why) {
    ++left_out_count_;
    left_out_(name, why);
}

}  // namespace hearth::cli
