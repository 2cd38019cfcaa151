#include "pool/image/ImageStore.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "pool/image/Layout.h"
#include "pool/image/Reference.h"
#include "pool/image/RootfsLint.h"
#include "pool/image/RootfsTree.h"
#include "pool/sys/Files.h"

namespace hearth::pool::image {
namespace {

constexpr std::string_view kUnfinished = ".unfinished-";
constexpr std::string_view kAside = ".old-";
constexpr std::string_view kImport = ".import";
constexpr std::size_t kMaxFacts = 256U << 10U;

bool isHex(const std::string& name) {
    return isDigest("sha256:" + name);
}

}  // namespace

bool Image::is(const std::string& wanted) const {
    if (wanted == name || wanted == digest) return true;
    if (!source_digest.empty() && wanted == source_digest) return true;
    // "python@sha256:…" with the image's name here names only this image.
    const std::size_t at = wanted.find('@');
    const std::optional<Reference> asked = parseReference(wanted);
    if (!asked) return false;
    const std::optional<Reference> known =
        reference.empty() ? std::nullopt : parseReference(reference);
    const bool called =
        wanted.substr(0, at) == name || (known && known->repository == asked->repository &&
                                         (asked->tag.empty() || asked->tag == known->tag));
    if (asked->digest.empty()) return called && known && asked->tag == known->tag;
    return called && (asked->digest == digest || asked->digest == source_digest);
}

Image ImageStore::read(const std::string& name) const {
    const Layout layout = readLayout(layoutPath(name), name);
    Image image{name, layout.digest, rootfs(layout.digest).has_value()};
    const auto about = sys::readFile(layoutPath(name) + "/hearth.json");
    const Json json = about ? Json::parse(*about, nullptr, false) : Json();
    if (json.is_object()) {
        image.source = textAt(json, "source");
        image.reference = textAt(json, "reference");
        image.source_digest = textAt(json, "sourceDigest");
        image.imported = textAt(json, json.contains("imported") ? "imported" : "built");
        image.on_demand = json.value("onDemand", Json(false)) == Json(true);
    }
    return image;
}

Image ImageStore::find(const std::string& wanted) const {
    if (isImageName(wanted) && ::access((layoutPath(wanted) + "/index.json").c_str(), F_OK) == 0) {
        return read(wanted);
    }
    for (Image& image : images()) {
        if (image.is(wanted)) return std::move(image);
    }
    throw Error(ErrorCode::NotFound, "there is no image \"" + wanted + "\"")
        .hint("`hearth image list` shows what there is; `hearth image import docker://" + wanted +
              "` brings it");
}

std::string ImageStore::rootfsPath(const std::string& digest) const {
    return treePath(digest.substr(kHexAt));
}

std::optional<std::string> ImageStore::rootfs(const std::string& digest) const {
    if (!isDigest(digest)) return std::nullopt;
    struct stat status {};
    std::string path = rootfsPath(digest);
    if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return std::nullopt;
    if (!hasMountPoints(path)) return std::nullopt;  // it was emptied: it is unpacked again
    return path;
}

ImageFacts ImageStore::facts(const std::string& digest) const {
    if (!isDigest(digest)) return {};
    return decodeFacts(sys::readFile(rootfsPath(digest) + ".json", kMaxFacts).value_or(""));
}

ImageConfig ImageStore::config(const Image& image) const {
    const std::string path = layoutPath(image.name);
    return readImageConfig(path, readLayout(path, image.name));
}

Fd ImageStore::lock(bool wait) const {
    const std::string path = data_dir_ + "/rootfs/.lock";
    Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) throwErrno("open", path);
    while (::flock(fd.get(), LOCK_EX | (wait ? 0 : LOCK_NB)) != 0) {
        if (errno == EWOULDBLOCK) return Fd();
        if (errno != EINTR) throwErrno("flock", path);
    }
    return fd;
}

Image ImageStore::prepare(const std::string& wanted) const {
    Image image = find(wanted);
    if (image.unpacked) return image;
    const Fd held = lock(true);
    const std::string path = layoutPath(image.name);
    const Layout layout = readLayout(path, image.name);
    prepareLayout(path, layout, {}, {});
    image.digest = layout.digest;
    image.unpacked = true;
    return image;
}

void ImageStore::prepareLayout(const std::string& path, const Layout& layout,
                               const UnpackLimits& limits, const Unpacked& told) const {
    if (rootfs(layout.digest)) return;
    clearUnfinished();
    // Only root can see the tree before it is hardened.
    const std::string hex = layout.digest.substr(kHexAt);
    const std::string parent = data_dir_ + "/rootfs/" + std::string(kUnfinished) + hex;
    const std::string tree = parent + "/rootfs";
    sys::makeDirectory(parent, 0700);
    try {
        // umoci checks the digest of every blob that it reads.
        unpackLayers(path, layout, tree, limits, told);
        lintRootfs(tree);
        hardenRootfs(tree);
        const ImageFacts facts = probeImage(tree, readImageConfig(path, layout));
        sys::writeFile(rootfsPath(layout.digest) + ".json", dumpJson(encodeFacts(facts)), 0644);
        // Synced before it gets its name: after a power cut it is complete or missing.
        const Fd fd(::open(tree.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!fd || ::syncfs(fd.get()) != 0) throwErrno("sync", tree);
        const std::string final_path = rootfsPath(layout.digest);
        sys::removeTree(final_path);  // the rest of an emptied tree
        if (::rename(tree.c_str(), final_path.c_str()) != 0) throwErrno("rename", final_path);
    } catch (...) {
        sys::removeTree(parent);
        sys::removeFile(rootfsPath(layout.digest) + ".json");
        throw;
    }
    sys::removeTree(parent);
}

std::vector<Image> ImageStore::images() const {
    std::vector<Image> images;
    for (const std::string& name : sys::listDirectory(data_dir_ + "/images")) {
        if (!isImageName(name)) continue;
        try {
            images.push_back(read(name));
        } catch (const Error&) {
            continue;  // half-copied or foreign: no usable image
        }
    }
    return images;
}

void ImageStore::removeUnfinished() const {
    const Fd held = lock(false);
    if (held) clearUnfinished();
}

void ImageStore::clearUnfinished() const {
    const std::string rootfs = data_dir_ + "/rootfs/";
    for (const std::string& name : sys::listDirectory(rootfs)) {
        if (name.starts_with(kUnfinished)) sys::removeTree(rootfs + name);
    }
}

std::vector<std::string> ImageStore::forget(const std::vector<std::string>& wanted) const {
    std::vector<std::string> removed;
    for (const Image& image : images()) {
        const auto means = [&](const std::string& each) { return image.is(each); };
        if (!image.on_demand || std::any_of(wanted.begin(), wanted.end(), means)) continue;
        // Moved aside first: a half-removed layout never has the name of an image.
        const std::string aside = data_dir_ + "/images/." + image.name + std::string(kImport);
        sys::removeTree(aside);
        const std::string place = layoutPath(image.name);
        if (::rename(place.c_str(), aside.c_str()) != 0) throwErrno("rename", place);
        sys::removeTree(aside);
        sys::removeFile(data_dir_ + "/images/." + image.name + ".lock");
        removed.push_back(image.name);
    }
    return removed;
}

std::vector<std::string> ImageStore::unreferenced() const {
    std::set<std::string> needed;
    for (const std::string& name : sys::listDirectory(data_dir_ + "/images")) {
        if (!isImageName(name)) continue;
        try {
            needed.insert(readLayout(layoutPath(name), name).digest.substr(kHexAt));
        } catch (const Error& e) {
            if (e.code() == ErrorCode::NotFound) continue;  // an incomplete build
            return {};  // its needs are unknown, so any tree may be needed
        }
    }
    std::vector<std::string> list;
    for (const std::string& name : sys::listDirectory(data_dir_ + "/rootfs")) {
        if (isHex(name) && !needed.contains(name)) list.push_back(name);
    }
    return list;
}

std::vector<std::string> ImageStore::collect(const InUse& in_use) const {
    std::vector<std::string> removed;
    const Fd held = lock(false);
    if (!held) return removed;
    putAllBack();
    clearImports();
    const auto used = [&](const std::string& hex) {
        const std::optional<std::set<std::string>> trees = in_use();
        return !trees || trees->contains(treePath(hex));
    };
    for (const std::string& hex : unreferenced()) {
        if (used(hex) || !putAside(hex)) continue;
        // A sandbox may have started in between: it keeps its tree.
        if (used(hex)) {
            putBack(hex);
        } else {
            discard(hex);
            removed.push_back("sha256:" + hex);
        }
    }
    return removed;
}

void ImageStore::clearImports() const {
    const std::string images = data_dir_ + "/images/";
    for (const std::string& entry : sys::listDirectory(images)) {
        if (!entry.starts_with('.') || !entry.ends_with(kImport)) continue;
        const std::string name = entry.substr(0, entry.size() - kImport.size());
        const Fd held(::open((images + name + ".lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
        if (held && ::flock(held.get(), LOCK_EX | LOCK_NB) == 0) sys::removeTree(images + entry);
    }
}

void ImageStore::putAllBack() const {
    for (const std::string& name : sys::listDirectory(data_dir_ + "/rootfs")) {
        if (!name.starts_with(kAside)) continue;
        const std::string hex = name.substr(kAside.size());
        struct stat status {};
        if (::lstat(treePath(hex).c_str(), &status) != 0) {
            putBack(hex);
        } else {
            sys::removeTree(data_dir_ + "/rootfs/" + name);
        }
    }
}

bool ImageStore::putAside(const std::string& hex) const {
    const std::string aside = data_dir_ + "/rootfs/" + std::string(kAside) + hex;
    return ::rename(treePath(hex).c_str(), aside.c_str()) == 0;
}

void ImageStore::putBack(const std::string& hex) const {
    const std::string aside = data_dir_ + "/rootfs/" + std::string(kAside) + hex;
    if (::rename(aside.c_str(), treePath(hex).c_str()) != 0) throwErrno("rename", aside);
}

void ImageStore::discard(const std::string& hex) const {
    sys::removeTree(data_dir_ + "/rootfs/" + std::string(kAside) + hex);
    sys::removeFile(treePath(hex) + ".json");
}

}  // namespace hearth::pool::image
