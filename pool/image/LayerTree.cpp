#include "pool/image/LayerTree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <vector>

#include "base/Error.h"
#include "base/Fd.h"
#include "base/Json.h"
#include "pool/image/Unpack.h"
#include "pool/tar/Tar.h"

namespace hearth::pool::image {
namespace {

constexpr std::size_t kPiece = 256U << 10U;
constexpr std::uint64_t kReserveEvery = 64ULL << 20U;
constexpr int kWalk = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

[[noreturn]] void refuseLayer(const std::string& why) {
    throw Error(ErrorCode::InvalidArgument, "the layer cannot be used: " + why);
}

[[noreturn]] void refuseLayer(const std::string& path, const char* why) {
    refuseLayer(tar::shownName(path) + " " + why);
}

/// The parts of a relative path; empty for the tree itself.
std::vector<std::string> partsOf(const std::string& path) {
    if (path.starts_with('/')) refuseLayer(path, "is not a relative path");
    const bool control = std::any_of(path.begin(), path.end(), [](char c) {
        return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
    });
    if (control || !isUtf8(path)) refuseLayer(path, "is not a name that can be stored");
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < path.size();) {
        const std::size_t slash = std::min(path.find('/', at), path.size());
        std::string part = path.substr(at, slash - at);
        at = slash + 1;
        if (part.empty() || part == ".") continue;
        if (part == "..") refuseLayer(path, "leads out of the layer");
        parts.push_back(std::move(part));
    }
    return parts;
}

class Tree final : public tar::TarSink {
public:
    Tree(const std::string& root, const LayerLimits& limits)
        : limits_(limits), path_(root), root_(::open(root.c_str(), kWalk)) {
        if (!root_) throwErrno("open", root);
    }

    bool member(const tar::TarMember& member) override {
        if (++entries_ > limits_.entries) refuseLayer("it holds too many files");
        std::vector<std::string> parts = partsOf(member.path);
        if (parts.size() > limits_.depth) refuseLayer(member.path, "lies too deep");
        if (member.type == tar::TarMember::Type::Directory) {
            enter(parts);
            return true;
        }
        if (parts.empty()) refuseLayer(member.path, "is no directory");
        const std::string name = std::move(parts.back());
        parts.pop_back();
        const int at = enter(parts);
        if (member.type == tar::TarMember::Type::Symlink) {
            link(member, at, name, parts.size());
        } else if (member.type == tar::TarMember::Type::File) {
            begin(member, at, name);
        } else {
            refuseLayer(member.path, "is a hard link");
        }
        return true;
    }

    bool content(std::string_view bytes) override {
        bytes_ += bytes.size();
        if (bytes_ > limits_.bytes) {
            throw Error(ErrorCode::InvalidArgument, "the layer is larger than " +
                                                        std::to_string(limits_.bytes >> 20U) +
                                                        " MiB, unpacked");
        }
        while (!bytes.empty()) {
            const ssize_t n = ::write(file_.get(), bytes.data(), bytes.size());
            if (n < 0 && errno == ENOSPC) {
                throw Error(ErrorCode::DiskFull, "the disk of the data directory is full");
            }
            if (n < 0 && errno != EINTR) throwErrno("write", path_);
            if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
        }
        if (bytes_ - checked_ > kReserveEvery) {
            requireFree(path_, limits_.disk_reserve);
            checked_ = bytes_;
        }
        return true;
    }

    bool memberEnd() override {
        if (file_ && ::fchmod(file_.get(), executable_ ? 0755 : 0644) != 0) throwErrno("chmod");
        file_.reset();
        return true;
    }

private:
    /// Opens the directory with these parts, made if missing; open until the next call.
    int enter(const std::vector<std::string>& parts) {
        if (parts == inside_ && directory_) return directory_.get();
        Fd at(::openat(root_.get(), ".", kWalk));
        if (!at) throwErrno("open", path_);
        for (const std::string& part : parts) {
            if (::mkdirat(at.get(), part.c_str(), 0755) == 0) {
                if (::fchmodat(at.get(), part.c_str(), 0755, 0) != 0) throwErrno("chmod", part);
            } else if (errno != EEXIST) {
                throwErrno("mkdir", part);
            }
            Fd next(::openat(at.get(), part.c_str(), kWalk));
            if (!next && (errno == ENOTDIR || errno == ELOOP))
                refuseLayer(part, "is there already");
            if (!next) throwErrno("open", part);
            at = std::move(next);
        }
        directory_ = std::move(at);
        inside_ = parts;
        return directory_.get();
    }

    void begin(const tar::TarMember& member, int at, const std::string& name) {
        file_ = Fd(
            ::openat(at, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!file_ && errno == EEXIST) refuseLayer(member.path, "is there already");
        if (!file_) throwErrno("open", name);
        executable_ = (member.mode & 0111U) != 0;
    }

    /// `depth` belongs to the directory that contains the link.
    static void link(const tar::TarMember& member, int at, const std::string& name,
                     std::size_t depth) {
        if (member.target.empty() || member.target.starts_with('/')) {
            refuseLayer(member.path, "is a link out of the layer");
        }
        std::size_t level = depth;
        for (std::size_t from = 0; from < member.target.size();) {
            const std::size_t slash = std::min(member.target.find('/', from), member.target.size());
            const std::string part = member.target.substr(from, slash - from);
            from = slash + 1;
            if (part.empty() || part == ".") continue;
            if (part != "..") {
                ++level;
            } else if (level-- == 0) {
                refuseLayer(member.path, "is a link out of the layer");
            }
        }
        if (::symlinkat(member.target.c_str(), at, name.c_str()) != 0) {
            if (errno == EEXIST) refuseLayer(member.path, "is there already");
            throwErrno("symlink", name);
        }
    }

    const LayerLimits& limits_;
    const std::string path_;
    const Fd root_;
    Fd directory_;
    std::vector<std::string> inside_;  ///< the path of directory_
    Fd file_;
    bool executable_ = false;
    std::uint64_t entries_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t checked_ = 0;
};

}  // namespace

void unpackLayer(int tar, const std::string& root, const LayerLimits& limits) {
    requireFree(root, limits.disk_reserve);
    Tree tree(root, limits);
    tar::TarReader reader(tree);
    std::string piece(kPiece, '\0');
    off_t at = 0;
    for (;;) {
        const ssize_t n = ::pread(tar, piece.data(), piece.size(), at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throwErrno("read", "the layer's archive");
        if (n == 0) break;
        at += n;
        if (!reader.feed(std::string_view(piece.data(), static_cast<std::size_t>(n)))) {
            refuseLayer(reader.fault());
        }
    }
    if (!reader.finish()) refuseLayer(reader.fault());
}

}  // namespace hearth::pool::image
