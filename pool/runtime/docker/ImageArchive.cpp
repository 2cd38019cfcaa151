#include "pool/runtime/docker/ImageArchive.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/Digest.h"
#include "base/Error.h"
#include "base/Json.h"
#include "base/http/Url.h"
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
    tar_.add({.name = "manifest.json"}, dumpJson(list));
    tar_.add({.name = nameOf(config) + ".json"}, *config_text);
    std::ranges::sort(blobs);
    blobs.erase(std::unique(blobs.begin(), blobs.end()), blobs.end());
    for (const std::string& blob : blobs) {
        Fd file(::open(blob.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
        struct stat status {};
        if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
            notUnderstood("a layer is missing");
        }
        layers_.emplace_back(TarEntry{.name = nameOf(blob) + ".tar",
                                      .size = static_cast<std::uint64_t>(status.st_size)},
                             std::move(file));
    }
}

std::size_t ImageArchive::read(char* out, std::size_t size) {
    while (true) {
        const std::size_t count = tar_.read(out, size);
        if (count > 0 || at_ > layers_.size()) return count;
        if (at_ == layers_.size()) {
            tar_.end();
        } else {
            auto& [entry, file] = layers_[at_];
            tar_.add(entry, std::move(file), "the image's layer " + entry.name);
        }
        ++at_;
    }
}

void importRoot(EngineClient& engine, TarWriter& root, const std::string& repository,
                const std::string& tag, TimePoint until) {
    root.end();
    EngineRequest request{.method = "POST",
                          .target = "/images/create?fromSrc=-&repo=" + percentEncode(repository) +
                                    "&tag=" + percentEncode(tag),
                          .body = {}};
    request.archive = [&](char* out, std::size_t size) { return root.read(out, size); };
    const EngineResponse response = engine.call(std::move(request), until);
    // Failures after the start are reported in the stream of progress.
    if (response.body.find("\"errorDetail\"") != std::string::npos) {
        throw std::runtime_error("docker: image import: " + toUtf8(response.body.substr(0, 500)));
    }
}

}  // namespace hearth::pool::docker
