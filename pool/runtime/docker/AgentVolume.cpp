#include "pool/runtime/docker/AgentVolume.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "base/Error.h"
#include "base/http/Url.h"
#include "pool/runtime/docker/ContainerConfig.h"
#include "pool/runtime/docker/ImageArchive.h"
#include "pool/sys/Files.h"

namespace hearth::pool::docker {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFile = 64U << 20U;
constexpr std::string_view kAgentRepository = "hearth/agent";

}  // namespace

AgentVolume::AgentVolume(EngineClient& engine, const std::string& instance, std::string inside)
    : engine_(engine),
      instance_(instance),
      inside_(std::move(inside)),
      name_("hearth-" + instance + "-agent-" + inside_.substr(inside_.rfind('/') + 1)) {}

std::string AgentVolume::ready(TimePoint until) {
    const MutexLock lock(mutex_);
    if (!ready_) {
        fill(until);
        ready_ = true;
    }
    return name_;
}

void AgentVolume::doubt() {
    const MutexLock lock(mutex_);
    ready_ = false;
}

bool AgentVolume::remove(const std::string& target, TimePoint until) {
    try {
        engine_.call({.method = "DELETE", .target = target, .body = {}}, until);
    } catch (const Error& e) {
        if (e.code() == ErrorCode::Conflict) return false;
        if (e.code() != ErrorCode::NotFound) throw;
    }
    return true;
}

void AgentVolume::fill(TimePoint until) {
    const std::string container = "/containers/" + name_;
    remove(container + "?force=1", until);
    if (!remove("/volumes/" + name_, until)) return;  // in use, so it is complete
    load(until);
    engine_.post("/volumes/create",
                 {{"Name", name_}, {"Driver", "local"}, {"Labels", {{kInstanceLabel, instance_}}}},
                 until);
    // Creating is enough: an empty volume receives the image's content at its path.
    engine_.post(
        "/containers/create?name=" + name_,
        {{"Image", std::string(kAgentRepository) + ":" + name_},
         {"Entrypoint", Json::array({"/.hearth/agent"})},
         {"Labels", {{kInstanceLabel, instance_}}},
         {"HostConfig",
          {{"NetworkMode", "none"},
           {"Mounts",
            Json::array({{{"Type", "volume"}, {"Source", name_}, {"Target", "/.hearth"}}})}}}},
        until);
    remove(container + "?force=1", until);
    remove("/images/" + std::string(kAgentRepository) + ":" + name_ + "?force=1", until);
}

void AgentVolume::load(TimePoint until) {
    TarWriter archive;
    const auto addFolder = [&](const std::string& name) {
        archive.add({.name = name, .type = TarEntry::Type::Directory, .mode = 0755});
    };
    addFolder(".hearth");
    std::vector<fs::path> paths;
    for (const auto& entry : fs::recursive_directory_iterator(inside_)) {
        paths.push_back(entry.path());
    }
    std::ranges::sort(paths);  // a folder comes before its content
    for (const fs::path& path : paths) {
        const std::string name = ".hearth/" + path.lexically_relative(inside_).string();
        if (fs::is_directory(path)) {
            addFolder(name);
            continue;
        }
        const auto content = sys::readFile(path, kMaxFile);
        if (!content) throw std::runtime_error("the agent's file " + name + " cannot be read");
        const auto mode = static_cast<unsigned>(fs::status(path).permissions());
        archive.add({.name = name, .mode = mode & 0555U}, *content);
    }
    importRoot(engine_, archive, std::string(kAgentRepository), name_, until);
}

void AgentVolume::removeUnused(const std::function<bool()>& wanted, TimePoint until) {
    const MutexLock lock(mutex_);
    if (wanted()) return;
    remove("/containers/" + name_ + "?force=1", until);
    const Json filters{{"label", Json::array({std::string(kInstanceLabel) + "=" + instance_})}};
    const Json found = engine_.get("/volumes?filters=" + percentEncode(dumpJson(filters)), until);
    const auto volumes = found.find("Volumes");
    if (volumes != found.end() && volumes->is_array()) {
        for (const Json& volume : *volumes) {
            const std::string name = volume.value("Name", "");
            if (!name.starts_with("hearth-" + instance_ + "-agent-")) continue;
            if (remove("/volumes/" + name, until) && name == name_) ready_ = false;
        }
    }
    remove("/images/" + std::string(kAgentRepository) + ":" + name_ + "?force=1", until);
}

}  // namespace hearth::pool::docker
