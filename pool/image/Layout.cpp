#include "pool/image/Layout.h"

#include <nlohmann/json.hpp>

#include "base/Digest.h"
#include "base/Error.h"
#include "base/Json.h"
#include "pool/image/Reference.h"
#include "pool/sys/Files.h"

namespace hearth::pool::image {
namespace {

constexpr const char* kRefName = "org.opencontainers.image.ref.name";
constexpr std::size_t kMaxJson = 4U << 20U;

[[noreturn]] void notUnderstood(const std::string& name, const std::string& why) {
    throw Error(ErrorCode::InvalidArgument, "image \"" + name + "\": " + why)
        .hint("import it again, or build it again with sandbox_images/build");
}

std::vector<std::string> texts(const Json& object, const char* key) {
    std::vector<std::string> list;
    const auto found = object.find(key);
    if (found == object.end() || !found->is_array()) return list;
    for (const Json& item : *found) {
        if (item.is_string()) list.push_back(item.get<std::string>());
    }
    return list;
}

/// Reads a small blob and checks it against the digest in its name.
std::string blob(const std::string& path, const std::string& name, const std::string& digest,
                 const char* what) {
    const auto content = sys::readFile(path + "/blobs/sha256/" + digest.substr(kHexAt), kMaxJson);
    if (!content || "sha256:" + toHex(sha256(*content)) != digest) {
        notUnderstood(name, std::string("its ") + what + " is missing or damaged");
    }
    return *content;
}

/// Manifests without an image's JSON are not refused here: they are only names for a digest.
void readManifest(const std::string& manifest, Layout& layout) {
    const Json json = Json::parse(manifest, nullptr, false);
    if (!json.is_object()) return;
    const auto config = json.find("config");
    if (config != json.end() && config->is_object() && isDigest(textAt(*config, "digest"))) {
        layout.config = textAt(*config, "digest");
    }
    const auto layers = json.find("layers");
    if (layers == json.end() || !layers->is_array()) return;
    layout.layers = layers->size();
    for (const Json& layer : *layers) {
        const auto size = layer.is_object() ? layer.find("size") : layer.end();
        if (layer.is_object() && size != layer.end() && size->is_number_unsigned()) {
            layout.stored_bytes += size->get<std::uint64_t>();
        }
    }
}

}  // namespace

Layout readLayout(const std::string& path, const std::string& name) {
    const auto index = sys::readFile(path + "/index.json", kMaxJson);
    if (!index) {
        throw Error(ErrorCode::NotFound, "there is no image \"" + name + "\"")
            .hint(
                "`hearth image list` shows what there is; `hearth image import` and "
                "sandbox_images/build bring more");
    }
    const Json json = parseJson(*index);
    const auto list = json.is_object() ? json.find("manifests") : json.end();
    if (list == json.end() || !list->is_array() || list->empty()) {
        notUnderstood(name, "its index names no manifest");
    }
    const Json* chosen = list->size() == 1 ? &list->front() : nullptr;
    Layout layout;
    for (const Json& manifest : *list) {
        if (!manifest.is_object()) notUnderstood(name, "its index is malformed");
        const auto annotations = manifest.find("annotations");
        if (annotations == manifest.end() || !annotations->is_object()) continue;
        const std::string ref = textAt(*annotations, kRefName);
        if (&manifest == chosen || ref == "latest" || ref == name) {
            chosen = &manifest;
            layout.tag = ref;
        }
    }
    if (chosen == nullptr)
        notUnderstood(name, "it has several manifests and none is tagged latest");
    layout.digest = textAt(*chosen, "digest");
    if (!isDigest(layout.digest)) notUnderstood(name, "its manifest has no sha256 digest");
    readManifest(blob(path, name, layout.digest, "manifest"), layout);
    return layout;
}

ImageConfig readImageConfig(const std::string& path, const Layout& layout) {
    ImageConfig config;
    if (layout.config.empty()) return config;
    const std::string content = blob(path, layout.digest, layout.config, "configuration");
    const Json json = Json::parse(content, nullptr, false);
    if (!json.is_object()) return config;
    config.architecture = textAt(json, "architecture");
    config.created = textAt(json, "created");
    const auto settings = json.find("config");
    if (settings == json.end() || !settings->is_object()) return config;
    config.env = texts(*settings, "Env");
    config.workdir = textAt(*settings, "WorkingDir");
    config.user = textAt(*settings, "User");
    config.entrypoint = texts(*settings, "Entrypoint");
    for (std::string& word : texts(*settings, "Cmd")) config.entrypoint.push_back(std::move(word));
    return config;
}

}  // namespace hearth::pool::image
