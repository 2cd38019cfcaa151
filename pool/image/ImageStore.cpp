#include "pool/image/ImageStore.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Fd.h"
#include "base/Ids.h"
#include "base/Json.h"
#include "pool/image/RootfsTree.h"
#include "pool/sys/Files.h"
#include "pool/sys/Process.h"

namespace hearth::pool::image {
namespace {

constexpr const char* kRefName = "org.opencontainers.image.ref.name";
constexpr std::string_view kAlgorithm = "sha256:";
constexpr std::string_view kUnfinished = ".unfinished-";
constexpr std::size_t kMaxIndex = 1U << 20U;

bool isDigest(const std::string& text) {
    return text.starts_with(kAlgorithm) && text.size() == kAlgorithm.size() + 64 &&
           text.find_first_not_of("0123456789abcdef", kAlgorithm.size()) == std::string::npos;
}

[[noreturn]] void notUnderstood(const std::string& name, const std::string& why) {
    throw Error(ErrorCode::InvalidArgument, "image \"" + name + "\": " + why)
        .hint("build it again with sandbox_images/build");
}

std::string text(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool isTag(const std::string& tag) {
    return !tag.empty() && tag.size() <= 128 && tag.front() != '-' &&
           tag.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               std::string::npos;
}

}  // namespace

struct ImageStore::Manifest {
    std::string digest;
    std::string tag;
};

ImageStore::Manifest ImageStore::manifestOf(const std::string& name) const {
    const std::string layout = data_dir_ + "/images/" + name;
    const auto index = sys::readFile(layout + "/index.json", kMaxIndex);
    if (!index) {
        throw Error(ErrorCode::NotFound, "there is no image \"" + name + "\"")
            .hint("build it with sandbox_images/build " + name);
    }
    const Json json = parseJson(*index);
    const auto list = json.is_object() ? json.find("manifests") : json.end();
    if (list == json.end() || !list->is_array() || list->empty()) {
        notUnderstood(name, "its index names no manifest");
    }
    // One manifest, or the one that is tagged "latest" or with the image's own name.
    const Json* chosen = list->size() == 1 ? &list->front() : nullptr;
    std::string tag;
    for (const Json& manifest : *list) {
        if (!manifest.is_object()) notUnderstood(name, "its index is malformed");
        const auto annotations = manifest.find("annotations");
        if (annotations == manifest.end() || !annotations->is_object()) continue;
        const std::string ref = text(*annotations, kRefName);
        if (&manifest == chosen || ref == "latest" || ref == name) {
            chosen = &manifest;
            tag = ref;
        }
    }
    if (chosen == nullptr)
        notUnderstood(name, "it has several manifests and none is tagged latest");
    const std::string digest = text(*chosen, "digest");
    if (!isDigest(digest)) notUnderstood(name, "its manifest has no sha256 digest");
    const auto blob =
        sys::readFile(layout + "/blobs/sha256/" + digest.substr(kAlgorithm.size()), kMaxIndex);
    if (!blob || std::string(kAlgorithm) + toHex(sha256(*blob)) != digest) {
        notUnderstood(name, "its manifest is missing or damaged");
    }
    return {digest, tag};
}

std::string ImageStore::digestOf(const std::string& name) const {
    return manifestOf(name).digest;
}

std::string ImageStore::rootfsPath(const std::string& digest) const {
    return data_dir_ + "/rootfs/" + digest.substr(kAlgorithm.size());
}

std::optional<std::string> ImageStore::rootfs(const std::string& digest) const {
    if (!isDigest(digest)) return std::nullopt;
    struct stat status {};
    std::string path = rootfsPath(digest);
    if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return std::nullopt;
    return path;
}

std::string ImageStore::unpack(const std::string& name) const {
    const Manifest manifest = manifestOf(name);
    if (rootfs(manifest.digest)) return manifest.digest;
    if (!isTag(manifest.tag)) notUnderstood(name, "its manifest has no tag");

    // Nobody but root sees the tree before it is hardened.
    const std::string parent = data_dir_ + "/rootfs/" + std::string(kUnfinished) + name;
    const std::string tree = parent + "/rootfs";
    sys::removeTree(parent);
    sys::makeDirectory(parent, 0700);
    // umoci checks the digest of every blob that it reads.
    const std::string layout = data_dir_ + "/images/" + name;
    const int status = sys::run(
        {{"umoci", "raw", "unpack", "--image", layout + ":" + manifest.tag, tree}, -1, ""});
    if (status != 0) {
        sys::removeTree(parent);
        if (status == 127) {
            throw Error(ErrorCode::Unsupported, "images cannot be unpacked: umoci is missing")
                .hint("apt-get install umoci");
        }
        notUnderstood(name, "umoci could not unpack it, status " + std::to_string(status));
    }
    hardenRootfs(tree);
    // On the disk before it gets its name: after a power cut it is whole or not there.
    const Fd fd(::open(tree.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::syncfs(fd.get()) != 0) throwErrno("sync", tree);
    const std::string path = rootfsPath(manifest.digest);
    if (::rename(tree.c_str(), path.c_str()) != 0) throwErrno("rename", path);
    sys::removeTree(parent);
    return manifest.digest;
}

std::vector<Image> ImageStore::images() const {
    std::vector<Image> images;
    for (const std::string& name : sys::listDirectory(data_dir_ + "/images")) {
        try {
            const std::string digest = digestOf(name);
            images.push_back({name, digest, rootfs(digest).has_value()});
        } catch (const Error&) {
            continue;  // half-copied or foreign: not an image that can be offered
        }
    }
    return images;
}

void ImageStore::removeUnfinished() const {
    for (const std::string& name : sys::listDirectory(data_dir_ + "/rootfs")) {
        if (name.starts_with(kUnfinished)) sys::removeTree(data_dir_ + "/rootfs/" + name);
    }
}

}  // namespace hearth::pool::image
