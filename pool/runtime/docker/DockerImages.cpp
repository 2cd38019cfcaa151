#include "pool/runtime/docker/DockerImages.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "base/Error.h"
#include "pool/runtime/docker/ImageArchive.h"

namespace hearth::pool::docker {
namespace {

constexpr auto kLoad = std::chrono::minutes(15);
constexpr std::size_t kDigits = 12;
constexpr std::size_t kAlgorithm = 7;  // "sha256:"
constexpr std::size_t kMostNames = 300;
constexpr std::string_view kRepository = "hearth/";

/// A repository's name as Docker takes it: lower case, and separators only inside.
std::string requireRepository(const std::string& name) {
    const auto inside = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    bool good = inside(name.front()) && inside(name.back());
    for (const char c : name) good = good && (inside(c) || c == '-' || c == '.' || c == '_');
    if (!good || name.find("..") != std::string::npos) {
        throw Error(ErrorCode::InvalidArgument, "Docker knows no image named \"" + name + "\"")
            .hint("rename the folder: lower-case letters, digits and single - . _ between them");
    }
    return std::string(kRepository) + name;
}

}  // namespace

DockerImages::DockerImages(EngineClient& engine, std::string data_dir)
    : engine_(engine), data_dir_(std::move(data_dir)), layouts_(data_dir_) {}

bool DockerImages::hasLayout(const std::string& name) const {
    if (name.empty() || name.front() == '.' || name.find_first_of("/:@") != std::string::npos) {
        return false;
    }
    return ::access((data_dir_ + "/images/" + name + "/index.json").c_str(), F_OK) == 0;
}

std::optional<std::string> DockerImages::idOf(const std::string& reference, TimePoint until) {
    const auto found = engine_.find("/images/" + percentEncoded(reference) + "/json", until);
    if (!found) return std::nullopt;
    return found->at("Id").get<std::string>();
}

std::string DockerImages::resolve(const std::string& name, TimePoint until) {
    if (!hasLayout(name)) {
        if (const auto id = idOf(name, until)) return *id;
        throw Error(ErrorCode::NotFound, "there is no image \"" + name + "\"")
            .hint("docker pull " + name + ", or build it with sandbox_images/build");
    }
    const std::string digest = layouts_.digestOf(name);
    const std::string tag = requireRepository(name) + ":" + digest.substr(kAlgorithm, kDigits);
    if (const auto id = idOf(tag, until)) return *id;
    const TimePoint loaded_by = SystemClock().now() + kLoad;
    const Gate::Place place = loading_.enter(loaded_by);
    // Another may have loaded it while this one waited.
    if (const auto id = idOf(tag, SystemClock().now() + std::chrono::seconds(10))) return *id;
    load(name, digest, tag, loaded_by);
    if (const auto id = idOf(tag, SystemClock().now() + std::chrono::seconds(10))) return *id;
    throw std::runtime_error("the Docker Engine loaded an image and does not have it");
}

void DockerImages::load(const std::string& name, const std::string& digest, const std::string& tag,
                        TimePoint until) {
    ImageArchive archive(data_dir_ + "/images/" + name, digest, tag);
    EngineRequest request{.method = "POST", .target = "/images/load?quiet=1", .body = {}};
    request.archive = [&archive](char* out, std::size_t size) { return archive.read(out, size); };
    const EngineResponse response = engine_.call(std::move(request), until);
    // Failures after the start come in the stream of progress.
    if (response.body.find("\"errorDetail\"") != std::string::npos) {
        throw std::runtime_error("docker: image load: " + toUtf8(response.body.substr(0, 500)));
    }
}

EngineImage DockerImages::inspect(const std::string& id, TimePoint until) {
    const auto found = engine_.find("/images/" + percentEncoded(id) + "/json", until);
    if (!found) {
        throw Error(ErrorCode::NotFound, "the Docker Engine has lost the image")
            .hint("it comes back with the next sandbox");
    }
    EngineImage image;
    image.id = found->at("Id").get<std::string>();
    const auto config = found->find("Config");
    if (config == found->end() || !config->is_object()) return image;
    if (const auto volumes = config->find("Volumes");
        volumes != config->end() && volumes->is_object()) {
        for (const auto& [path, nothing] : volumes->items()) image.volumes.push_back(path);
    }
    if (const auto env = config->find("Env"); env != config->end() && env->is_array()) {
        for (const Json& variable : *env) {
            if (variable.is_string()) image.env.push_back(variable.get<std::string>());
        }
    }
    if (const auto workdir = config->find("WorkingDir");
        workdir != config->end() && workdir->is_string()) {
        image.workdir = workdir->get<std::string>();
    }
    return image;
}

std::vector<std::string> DockerImages::ready(TimePoint until) {
    std::set<std::string> tags;
    for (const Json& image : engine_.get("/images/json", until)) {
        const auto found = image.find("RepoTags");
        if (found == image.end() || !found->is_array()) continue;
        for (const Json& tag : *found) {
            if (tag.is_string() && tag != "<none>:<none>") tags.insert(tag.get<std::string>());
        }
    }
    std::vector<std::string> names;
    for (const image::Image& layout : layouts_.images()) {
        const std::string tag = std::string(kRepository) + layout.name + ":" +
                                layout.digest.substr(kAlgorithm, kDigits);
        if (tags.contains(tag)) names.push_back(layout.name);
    }
    for (const std::string& tag : tags) {
        if (!tag.starts_with(kRepository) && names.size() < kMostNames) names.push_back(tag);
    }
    return names;
}

}  // namespace hearth::pool::docker
