#include "pool/runtime/docker/ImageArchive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/Error.h"
#include "base/Ids.h"
#include "base/Json.h"
#include "pool/runtime/docker/TarHeader.h"
#include "pool/sys/Files.h"

namespace hearth::pool::docker {
namespace {

constexpr std::size_t kMaxConfig = 1U << 20U;
constexpr std::string_view kAlgorithm = "sha256:";

[[noreturn]] void notUnderstood(const std::string& why) {
    throw Error(ErrorCode::InvalidArgument, "the image's layout: " + why)
        .hint("build it again with sandbox_images/build");
}

std::string blobPath(const std::string& layout, const Json& descriptor) {
    const std::string digest = descriptor.is_object() ? descriptor.value("digest", "") : "";
    if (!digest.starts_with(kAlgorithm) || digest.size() != kAlgorithm.size() + 64 ||
        digest.find_first_not_of("0123456789abcdef", kAlgorithm.size()) != std::string::npos) {
        notUnderstood("a digest is malformed");
    }
    return layout + "/blobs/sha256/" + digest.substr(kAlgorithm.size());
}

std::string nameOf(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

}  // namespace

ImageArchive::ImageArchive(const std::string& layout, const std::string& digest,
                           const std::string& tag) {
    const auto text = sys::readFile(blobPath(layout, {{"digest", digest}}), kMaxConfig);
    if (!text) notUnderstood("its manifest is missing");
    const Json manifest = parseJson(*text);
    if (!manifest.is_object() || !manifest.contains("config") || !manifest.contains("layers") ||
        !manifest["layers"].is_array()) {
        notUnderstood("its manifest is no image's");
    }
    const std::string config = blobPath(layout, manifest["config"]);
    const auto config_text = sys::readFile(config, kMaxConfig);
    if (!config_text || toHex(sha256(*config_text)) != nameOf(config)) {
        notUnderstood("its configuration is missing or damaged");
    }
    Json layers = Json::array();
    std::vector<std::string> blobs;
    for (const Json& layer : manifest["layers"]) {
        blobs.push_back(blobPath(layout, layer));
        layers.push_back(nameOf(blobs.back()) + ".tar");
    }
    const Json list = Json::array({{{"Config", nameOf(config) + ".json"},
                                    {"RepoTags", Json::array({tag})},
                                    {"Layers", layers}}});
    addText("manifest.json", dumpJson(list));
    addText(nameOf(config) + ".json", *config_text);
    std::ranges::sort(blobs);
    blobs.erase(std::unique(blobs.begin(), blobs.end()), blobs.end());
    for (const std::string& blob : blobs) addFile(nameOf(blob) + ".tar", blob);
    parts_.push_back({.text = tarEnd()});
}

void ImageArchive::addText(const std::string& name, const std::string& text) {
    parts_.push_back({.text = tarHeader({.name = name, .size = text.size()}) + text +
                              std::string(tarPadding(text.size()), '\0')});
}

void ImageArchive::addFile(const std::string& name, const std::string& path) {
    Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
        notUnderstood("a layer is missing");
    }
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    parts_.push_back({.text = tarHeader({.name = name, .size = bytes}),
                      .file = std::move(file),
                      .bytes = bytes,
                      .padding = tarPadding(bytes)});
}

std::size_t ImageArchive::read(char* out, std::size_t size) {
    while (at_ < parts_.size()) {
        Part& part = parts_[at_];
        if (done_ < part.text.size()) {
            const std::size_t n = std::min(size, part.text.size() - done_);
            part.text.copy(out, n, done_);
            done_ += n;
            return n;
        }
        const std::uint64_t in_file = done_ - part.text.size();
        if (in_file < part.bytes) {
            const auto most =
                static_cast<std::size_t>(std::min<std::uint64_t>(size, part.bytes - in_file));
            const ssize_t n = ::read(part.file.get(), out, most);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) throwErrno("read", "image layer");
            if (n == 0) throw std::runtime_error("a layer of an image is cut short");
            done_ += static_cast<std::uint64_t>(n);
            return static_cast<std::size_t>(n);
        }
        const std::uint64_t in_padding = in_file - part.bytes;
        if (in_padding < part.padding) {
            const auto n =
                static_cast<std::size_t>(std::min<std::uint64_t>(size, part.padding - in_padding));
            std::memset(out, 0, n);
            done_ += n;
            return n;
        }
        part.file.reset();
        ++at_;
        done_ = 0;
    }
    return 0;
}

}  // namespace hearth::pool::docker
