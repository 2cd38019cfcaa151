#include "pool/runtime/docker/DockerImages.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "base/Error.h"
#include "base/http/Url.h"
#include "pool/image/PullFailure.h"
#include "pool/image/Reference.h"
#include "pool/runtime/docker/ImageArchive.h"

namespace hearth::pool::docker {
namespace {

constexpr auto kLoad = std::chrono::minutes(15);
constexpr auto kImageLook = std::chrono::seconds(10);
constexpr std::size_t kDigits = 12;
constexpr std::size_t kDigestAt = 7;  // "sha256:"
constexpr std::size_t kMostNames = 300;
constexpr std::size_t kMaxSaid = 400;
constexpr std::string_view kRepository = "hearth/";
constexpr std::string_view kFetched = "ondemand:";  ///< records of fetched images

/// Checks for a repository name that Docker accepts: lower case, and separators only inside.
bool isRepositoryName(const std::string& name) {
    const auto inside = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    bool good = inside(name.front()) && inside(name.back());
    for (const char c : name) good = good && (inside(c) || c == '-' || c == '.' || c == '_');
    return good && name.find("..") == std::string::npos;
}

std::string requireRepository(const std::string& name) {
    if (!isRepositoryName(name)) {
        throw Error(ErrorCode::InvalidArgument, "Docker knows no image named \"" + name + "\"")
            .hint("rename the folder: lower-case letters, digits and single - . _ between them");
    }
    return std::string(kRepository) + name;
}

std::vector<std::string> textsOf(const Json& object, const char* key) {
    std::vector<std::string> texts;
    const auto found = object.find(key);
    if (found == object.end() || !found->is_array()) return texts;
    for (const Json& text : *found) {
        if (text.is_string()) texts.push_back(text.get<std::string>());
    }
    return texts;
}

/// True for two spellings of one reference: "docker.io/library/python:3" and "python:3".
bool sameReference(const std::string& one, const std::string& other) {
    const auto a = image::parseReference(one);
    return a && a == image::parseReference(other);
}

/// Checks whether a name with a digest, "python@sha256:…", matches `wanted`: the digest alone, or
/// with the repository.
bool sameDigest(const std::string& name, const std::string& wanted) {
    if (image::isDigest(wanted)) return name.ends_with("@" + wanted);
    const auto a = image::parseReference(name);
    const auto b = image::parseReference(wanted);
    return a && b && !b->digest.empty() && a->repository == b->repository && a->digest == b->digest;
}

}  // namespace

DockerImages::DockerImages(EngineClient& engine, std::string data_dir)
    : engine_(engine),
      data_dir_(std::move(data_dir)),
      layouts_(data_dir_),
      records_(recordsOf(data_dir_)) {}

bool DockerImages::hasLayout(const std::string& name) const {
    return image::isImageName(name) &&
           ::access((data_dir_ + "/images/" + name + "/index.json").c_str(), F_OK) == 0;
}

std::optional<image::Image> DockerImages::layoutOf(const std::string& name) const {
    try {
        return layouts_.find(name);
    } catch (const Error& e) {
        if (e.code() == ErrorCode::NotFound) return std::nullopt;
        throw;
    }
}

std::string DockerImages::tagOf(const image::Image& layout) {
    return requireRepository(layout.name) + ":" + layout.digest.substr(kDigestAt, kDigits);
}

std::optional<DockerImages::ImageNames> DockerImages::namesOf(const std::string& reference,
                                                              TimePoint until) {
    const auto found = engine_.find("/images/" + percentEncode(reference) + "/json", until);
    if (!found) return std::nullopt;
    ImageNames names;
    names.id = found->at("Id").get<std::string>();
    names.tags = textsOf(*found, "RepoTags");
    names.digests = textsOf(*found, "RepoDigests");
    return names;
}

std::optional<std::string> DockerImages::idOf(const std::string& reference, TimePoint until) {
    const auto names = namesOf(reference, until);
    return names ? std::optional(names->id) : std::nullopt;
}

std::optional<std::string> DockerImages::idOfDigest(const std::string& digest, TimePoint until) {
    for (const Json& image : engine_.get("/images/json", until)) {
        for (const std::string& each : textsOf(image, "RepoDigests")) {
            if (each.ends_with("@" + digest)) return image.at("Id").get<std::string>();
        }
    }
    return std::nullopt;
}

std::string DockerImages::resolve(const std::string& name, TimePoint until) {
    return lookUp(name, until, true).value();
}

std::optional<std::string> DockerImages::ready(const std::string& name, TimePoint until) {
    return lookUp(name, until, false);
}

std::optional<std::string> DockerImages::lookUp(const std::string& name, TimePoint until,
                                                bool may_load) {
    std::optional<ImageNames> names;
    std::optional<image::Image> layout;
    if (hasLayout(name)) {
        layout = layouts_.find(name);
    } else {
        names = namesOf(name, until);
        if (!names && image::isDigest(name)) {
            if (const auto id = idOfDigest(name, until)) names = namesOf(*id, until);
        }
        if (!names) layout = layoutOf(name);
    }
    if (layout) {
        std::optional<std::string> id = loaded(*layout, until);
        if (!id && !may_load) return std::nullopt;
        names = ImageNames{id ? *std::move(id) : resolveLayout(*layout, until), {}, {}};
    }
    if (!names) {
        throw Error(ErrorCode::NotFound, "there is no image \"" + name + "\"")
            .hint("docker pull " + name + ", or build it with sandbox_images/build");
    }
    std::string id = names->id;
    const MutexLock lock(mutex_);
    if (seen_.size() > kMostNames) seen_.clear();
    seen_.insert_or_assign(name, *std::move(names));
    return id;
}

std::optional<std::string> DockerImages::loaded(const image::Image& layout, TimePoint until) {
    const std::string tag = tagOf(layout);
    std::optional<std::string> id = idOf(tag, until);
    if (id) records_.add(tag.substr(kRepository.size()));
    return id;
}

std::string DockerImages::resolveLayout(const image::Image& layout, TimePoint until) {
    if (const auto id = loaded(layout, until)) return *id;
    const std::string tag = tagOf(layout);
    const TimePoint loaded_by = SystemClock().now() + kLoad;
    const Gate::Place place = loading_.enter(loaded_by);
    // Another thread may have loaded it during the wait.
    if (const auto id = idOf(tag, SystemClock().now() + kImageLook)) return *id;
    records_.add(tag.substr(kRepository.size()));
    load(layout.name, layout.digest, tag, loaded_by);
    if (const auto id = idOf(tag, SystemClock().now() + kImageLook)) return *id;
    throw std::runtime_error("the Docker Engine loaded an image and does not have it");
}

void DockerImages::load(const std::string& name, const std::string& digest, const std::string& tag,
                        TimePoint until) {
    ImageArchive archive(data_dir_ + "/images/" + name, digest, tag);
    EngineRequest request{.method = "POST", .target = "/images/load?quiet=1", .body = {}};
    request.archive = [&archive](char* out, std::size_t size) { return archive.read(out, size); };
    const EngineResponse response = engine_.call(std::move(request), until);
    // Failures after the start are reported in the stream of progress.
    if (response.body.find("\"errorDetail\"") != std::string::npos) {
        throw std::runtime_error("docker: image load: " + toUtf8(response.body.substr(0, 500)));
    }
}

EngineImage DockerImages::inspect(const std::string& id, TimePoint until) {
    const auto found = engine_.find("/images/" + percentEncode(id) + "/json", until);
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
        for (const std::string& tag : textsOf(image, "RepoTags")) {
            if (tag != "<none>:<none>") tags.insert(tag);
        }
    }
    std::vector<std::string> names;
    for (const image::Image& layout : layouts_.images()) {
        const std::string tag =
            std::string(kRepository) + layout.name + ":" + layout.digest.substr(kDigestAt, kDigits);
        if (tags.contains(tag)) names.push_back(layout.name);
    }
    for (const std::string& tag : tags) {
        if (!tag.starts_with(kRepository) && names.size() < kMostNames) names.push_back(tag);
    }
    return names;
}

bool DockerImages::same(const std::string& image, const std::string& wanted, TimePoint until) {
    if (image == wanted || sameReference(image, wanted)) return true;
    if (const auto layout = layoutOf(image); layout && layout->is(wanted)) return true;
    std::optional<ImageNames> names;
    {
        const MutexLock lock(mutex_);
        if (const auto seen = seen_.find(image); seen != seen_.end()) names = seen->second;
    }
    if (!names) {
        names = namesOf(image, until);
        if (!names) return false;
        const MutexLock lock(mutex_);
        seen_.insert_or_assign(image, *names);
    }
    if (names->id == wanted) return true;
    const auto called = [&](const std::string& name) { return sameReference(name, wanted); };
    const auto pinned = [&](const std::string& name) { return sameDigest(name, wanted); };
    return std::any_of(names->tags.begin(), names->tags.end(), called) ||
           std::any_of(names->digests.begin(), names->digests.end(), pinned);
}

std::optional<KnownImage> DockerImages::known(const std::string& wanted, TimePoint until) {
    std::optional<ImageNames> names;
    if (!hasLayout(wanted)) {
        names = namesOf(wanted, until);
        if (!names && image::isDigest(wanted)) {
            if (const auto id = idOfDigest(wanted, until)) names = namesOf(*id, until);
        }
    }
    if (names) {
        KnownImage known{names->id, names->id, {}};
        for (const auto& list : {names->tags, names->digests}) {
            known.names.insert(known.names.end(), list.begin(), list.end());
        }
        return known;
    }
    const auto layout = layoutOf(wanted);
    if (!layout) return std::nullopt;
    KnownImage known{layout->digest, layout->digest, {layout->name}};
    if (!layout->reference.empty()) known.names.push_back(layout->reference);
    return known;
}

void DockerImages::pull(const std::string& repository, const std::string& digest, TimePoint until) {
    const std::string name = repository + "@" + digest;
    try {
        EngineRequest request{.method = "POST",
                              .target = "/images/create?fromImage=" + percentEncode(repository) +
                                        "&tag=" + percentEncode(digest),
                              .body = {}};
        request.stop = &stopping_;
        const EngineResponse response = engine_.call(std::move(request), until);
        // Failures after the start are reported in the stream of progress.
        const std::size_t at = response.body.find("\"errorDetail\"");
        if (at == std::string::npos) return;
        const std::string said = toUtf8(response.body.substr(at, kMaxSaid));
        throw image::pullFailure(name, said, said);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::NotFound || !e.hint().empty()) throw;
        throw image::pullFailure(name, "not found", "not found");
    }
}

KnownImage DockerImages::fetch(const std::string& text, TimePoint until) {
    const auto reference = image::parseReference(text);
    if (!reference) throw Error(ErrorCode::InvalidArgument, "\"" + text + "\" is no reference");
    if (stopping_) throw Error(ErrorCode::Unavailable, "the server is shutting down");
    std::string digest = reference->digest;
    try {
        if (digest.empty()) {
            EngineRequest request{
                .method = "GET",
                .target = "/distribution/" + percentEncode(reference->text()) + "/json",
                .body = {}};
            request.stop = &stopping_;
            const Json told = parseJson(engine_.call(std::move(request), until).body);
            digest = told.at("Descriptor").at("digest").get<std::string>();
        }
        if (!image::isDigest(digest)) throw std::runtime_error("the registry gave no digest");
        const std::string name = reference->repository + "@" + digest;
        // An image that was already here belongs to somebody else, and stays when no claim needs it
        // any more.
        if (!idOf(name, until)) {
            records_.add(name);
            pull(reference->repository, digest, until);
            const auto id = idOf(name, SystemClock().now() + kImageLook);
            if (!id)
                throw std::runtime_error("the Docker Engine pulled an image and does not have it");
            const std::string tag = id->substr(kDigestAt, kDigits);
            records_.add(std::string(kFetched) + tag);
            engine_.post("/images/" + percentEncode(*id) + "/tag?repo=" +
                             percentEncode(std::string(kRepository) + "ondemand") + "&tag=" + tag,
                         nullptr, SystemClock().now() + kImageLook);
            records_.remove(name);
        }
        if (auto image = known(name, SystemClock().now() + kImageLook)) return *std::move(image);
        throw std::runtime_error("the Docker Engine pulled an image and has lost it");
    } catch (const Error& e) {
        if (e.code() != ErrorCode::NotFound || !e.hint().empty()) throw;
        throw image::pullFailure(text, "not found", "its registry does not have it");
    } catch (const Json::exception&) {
        throw image::pullFailure(text, "", "the registry's answer is not understood");
    } catch (const std::runtime_error& e) {
        if (dynamic_cast<const Error*>(&e) != nullptr) throw;
        throw image::pullFailure(text, e.what(), e.what());
    }
}

bool DockerImages::removeName(const std::string& name, TimePoint until) {
    try {
        engine_.call({.method = "DELETE", .target = "/images/" + percentEncode(name), .body = {}},
                     until);
    } catch (const Error& e) {
        if (e.code() == ErrorCode::Conflict) return false;
        if (e.code() != ErrorCode::NotFound) throw;
    }
    return true;
}

bool DockerImages::removeFetched(const std::string& tag, TimePoint until) {
    const auto names = namesOf(tag, until);
    if (!names) return true;
    // With another tag the image is also somebody else's, so only this server's name is removed.
    const bool ours = names->tags.size() <= 1;
    for (const std::string& name : ours ? names->digests : std::vector<std::string>{}) {
        removeName(name, until);
    }
    return removeName(tag, until);
}

void DockerImages::collect(const std::vector<std::string>& wanted, TimePoint until) {
    std::set<std::string> needed;
    for (const std::string& name : wanted) {
        const auto layout = layoutOf(name);
        if (layout) needed.insert(tagOf(*layout));
        if (const auto image = known(name, until)) needed.insert(image->digest);
    }
    for (const image::Image& layout : layouts_.images()) {
        // Nothing was loaded under a name that Docker does not accept.
        if (isRepositoryName(layout.name)) needed.insert(tagOf(layout));
    }
    for (const std::string& record : records_.all()) {
        if (record.find('@') != std::string::npos) {  // an interrupted pull
            const auto names = namesOf(record, until);
            if (!names || !names->tags.empty() || removeName(record, until))
                records_.remove(record);
            continue;
        }
        const std::string tag = std::string(kRepository) + record;
        const auto id = idOf(tag, until);
        if (id && (needed.contains(tag) || needed.contains(*id))) continue;
        const bool fetched = record.starts_with(kFetched);
        if (fetched ? removeFetched(tag, until) : removeName(tag, until)) records_.remove(record);
    }
}

}  // namespace hearth::pool::docker
