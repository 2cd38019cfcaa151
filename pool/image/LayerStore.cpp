#include "pool/image/LayerStore.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/image/Layout.h"
#include "pool/image/Reference.h"
#include "pool/sys/Files.h"

namespace hearth::pool::image {
namespace {

constexpr std::string_view kBegin = "sha256-";
constexpr std::string_view kUnfinishedLayer = ".unfinished-";
constexpr std::string_view kOld = ".old-";

void requireDigest(const std::string& digest) {
    if (!isDigest(digest)) throw Error(ErrorCode::InvalidArgument, "not a digest of a layer");
}

}  // namespace

std::string LayerStore::path(const std::string& digest) const {
    return directory_ + "/" + std::string(kBegin) + digest.substr(kHexAt);
}

std::optional<std::string> LayerStore::find(const std::string& digest) const {
    if (!isDigest(digest)) return std::nullopt;
    std::string where = path(digest);
    struct stat status {};
    if (::lstat(where.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return std::nullopt;
    return where;
}

std::string LayerStore::require(const std::string& digest) const {
    if (std::optional<std::string> found = find(digest)) return *std::move(found);
    throw Error(ErrorCode::NotFound, "there is no layer " + digest);
}

std::vector<std::string> LayerStore::all() const {
    std::vector<std::string> digests;
    for (const std::string& name : sys::listDirectory(directory_)) {
        if (!name.starts_with(kBegin)) continue;
        std::string digest = "sha256:" + name.substr(kBegin.size());
        if (isDigest(digest)) digests.push_back(std::move(digest));
    }
    return digests;
}

void LayerStore::add(const std::string& digest, int tar, const LayerLimits& limits) const {
    requireDigest(digest);
    if (find(digest)) return;
    const std::string unfinished =
        directory_ + "/" + std::string(kUnfinishedLayer) + digest.substr(kHexAt);
    sys::removeTree(unfinished);
    sys::makeDirectory(unfinished, 0700);
    try {
        unpackLayer(tar, unfinished, limits);
        // Synced before it gets its name: after a power cut it is complete or missing.
        const Fd fd(::open(unfinished.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!fd || ::fchmod(fd.get(), 0755) != 0) throwErrno("chmod", unfinished);
        if (::syncfs(fd.get()) != 0) throwErrno("sync", unfinished);
        const std::string final_path = path(digest);
        if (::rename(unfinished.c_str(), final_path.c_str()) != 0) {
            throwErrno("rename", final_path);
        }
    } catch (...) {
        sys::removeTree(unfinished);
        throw;
    }
    const Fd parent(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent || ::fsync(parent.get()) != 0) throwErrno("sync", directory_);
}

void LayerStore::remove(const std::string& digest) const {
    requireDigest(digest);
    if (!find(digest)) return;
    // Moved aside first: a half-removed layer never has a layer's name.
    const std::string old = directory_ + "/" + std::string(kOld) + digest.substr(kHexAt);
    sys::removeTree(old);
    if (::rename(path(digest).c_str(), old.c_str()) != 0) throwErrno("rename", old);
    sys::removeTree(old);
}

void LayerStore::removeUnfinished() const {
    for (const std::string& name : sys::listDirectory(directory_)) {
        if (name.starts_with(kUnfinishedLayer) || name.starts_with(kOld)) {
            sys::removeTree(directory_ + "/" + name);
        }
    }
}

}  // namespace hearth::pool::image
