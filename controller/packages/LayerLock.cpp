#include "controller/packages/LayerLock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/Digest.h"
#include "base/Error.h"
#include "base/Fd.h"
#include "controller/packages/PackageSpec.h"
#include "pool/image/Reference.h"
#include "pool/sys/Files.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kMostLines = 2000;
constexpr std::size_t kMostLockBytes = 1U << 20U;
constexpr std::string_view kHash = " --hash=";
constexpr std::string_view kSuffix = ".lock";
constexpr std::string_view kImage = "# image: ";
constexpr std::string_view kImageDigest = "# image digest: ";
constexpr std::string_view kLayer = "# layer: ";
constexpr std::string_view kSpec = "# wanted: ";

[[noreturn]] void refuse(const std::string& why) {
    throw Error(ErrorCode::InvalidArgument, "the lock of a layer " + why);
}

LockedPackage packageOf(std::string_view line) {
    const std::size_t hash = line.find(kHash);
    const std::string spec(line.substr(0, hash));
    const std::string name = packageName(spec);
    const std::string_view version =
        std::string_view(spec).substr(std::min(name.size() + 2, spec.size()));
    if (wrongSpec(spec, PackageManager::Pip) || spec != name + "==" + std::string(version) ||
        version.find_first_of(" ,*;<>=!~") != std::string_view::npos) {
        refuse("holds what is no package with its version");
    }
    if (hash == std::string_view::npos) refuse("holds a package without a hash");
    for (std::string_view rest = line.substr(hash); !rest.empty();) {
        if (!rest.starts_with(kHash)) refuse("holds more than packages and hashes");
        rest.remove_prefix(kHash.size());
        const std::size_t end = std::min(rest.find(' '), rest.size());
        if (!pool::image::isDigest(std::string(rest.substr(0, end)))) {
            refuse("holds what is no hash of SHA-256");
        }
        rest.remove_prefix(end);
    }
    return {name, std::string(version)};
}

/// The rest of a line that begins with `begin`.
std::optional<std::string> after(std::string_view line, std::string_view begin) {
    if (!line.starts_with(begin)) return std::nullopt;
    return std::string(line.substr(begin.size()));
}

void syncTo(const std::string& path) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd || ::fsync(fd.get()) != 0) throwErrno("sync", path);
}

}  // namespace

LayerLock parseLayerLock(std::string_view text) {
    if (text.size() > kMostLockBytes) refuse("is too long");
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (end > 0) lines.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (lines.empty()) refuse("is empty");
    if (lines.size() > kMostLines) refuse("names too many packages");
    std::sort(lines.begin(), lines.end());
    LayerLock lock;
    for (const std::string& line : lines) {
        LockedPackage package = packageOf(line);
        const bool again =
            std::any_of(lock.packages.begin(), lock.packages.end(),
                        [&](const LockedPackage& each) { return each.name == package.name; });
        if (again) refuse("names a package twice");
        lock.packages.push_back(std::move(package));
        lock.text += line + "\n";
    }
    return lock;
}

std::string layerDigest(std::string_view image_digest, const LayerLock& lock) {
    return "sha256:" + toHex(sha256(std::string(image_digest) + "\n" + lock.text));
}

std::vector<std::string> sortedSpecs(std::vector<std::string> specs) {
    std::sort(specs.begin(), specs.end());
    specs.erase(std::unique(specs.begin(), specs.end()), specs.end());
    return specs;
}

LayerLocks::LayerLocks(std::string directory) : directory_(std::move(directory)) {
    std::filesystem::create_directories(directory_);
    for (const std::string& name : sys::listDirectory(directory_)) {
        if (name.ends_with(kUnfinishedLock)) sys::removeFile(directory_ + "/" + name);
    }
}

std::string LayerLocks::nameOf(const std::string& image_digest,
                               const std::vector<std::string>& specs) {
    std::string text = image_digest;
    for (const std::string& spec : specs) text += "\n" + spec;
    return toHex(sha256(text)).substr(0, 32) + std::string(kSuffix);
}

std::optional<LayerRecord> LayerLocks::read(const std::string& name) const {
    const std::optional<std::string> text =
        sys::readFile(directory_ + "/" + name, 2 * kMostLockBytes);
    if (!text) return std::nullopt;
    LayerRecord record;
    std::string lines;
    for (std::size_t at = 0; at < text->size();) {
        const std::size_t end = std::min(text->find('\n', at), text->size());
        const std::string_view line = std::string_view(*text).substr(at, end - at);
        at = end + 1;
        if (auto image = after(line, kImage)) record.image = *image;
        if (auto digest = after(line, kImageDigest)) record.image_digest = *digest;
        if (auto layer = after(line, kLayer)) record.layer = *layer;
        if (auto spec = after(line, kSpec)) record.specs.push_back(*spec);
        if (!line.starts_with('#')) lines += std::string(line) + "\n";
    }
    try {
        record.lock = parseLayerLock(lines);
    } catch (const Error&) {
        return std::nullopt;  // edited: it is made again
    }
    const bool sound = record.layer == layerDigest(record.image_digest, record.lock) &&
                       nameOf(record.image_digest, record.specs) == name;
    return sound ? std::optional(std::move(record)) : std::nullopt;
}

std::optional<LayerRecord> LayerLocks::find(const std::string& image_digest,
                                            const std::vector<std::string>& specs) const {
    return read(nameOf(image_digest, specs));
}

std::vector<LayerRecord> LayerLocks::all() const {
    std::vector<LayerRecord> records;
    for (const std::string& name : sys::listDirectory(directory_)) {
        if (!name.ends_with(kSuffix)) continue;
        if (auto record = read(name)) records.push_back(*std::move(record));
    }
    return records;
}

void LayerLocks::put(const LayerRecord& record) const {
    std::string text = "# What Hearth resolved once; remove this file to have it resolved anew.\n";
    text += std::string(kImage) + record.image + "\n";
    text += std::string(kImageDigest) + record.image_digest + "\n";
    text += std::string(kLayer) + record.layer + "\n";
    for (const std::string& spec : record.specs) text += std::string(kSpec) + spec + "\n";
    text += record.lock.text;
    const std::string path = directory_ + "/" + nameOf(record.image_digest, record.specs);
    const std::string unfinished = path + kUnfinishedLock;
    sys::writeFile(unfinished, text, 0644);
    syncTo(unfinished);
    if (::rename(unfinished.c_str(), path.c_str()) != 0) throwErrno("rename", path);
    syncTo(directory_);
}

void LayerLocks::remove(const LayerRecord& record) const {
    sys::removeFile(directory_ + "/" + nameOf(record.image_digest, record.specs));
}

}  // namespace hearth::controller
