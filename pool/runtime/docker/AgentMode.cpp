#include "pool/runtime/docker/AgentMode.h"

#include <sys/utsname.h>

#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/runtime/docker/ImageArchive.h"
#include "pool/sys/Files.h"

namespace hearth::pool::docker {
namespace {

constexpr const char* kProbeRepository = "hearth/probe";

/// The objects of one test; the destructor removes them.
class Probe {
public:
    Probe(EngineClient& engine, const std::vector<std::string>& folders, TimePoint until)
        : engine_(engine), name_("hearth-probe-" + newId("sb_").substr(3)), until_(until) {
        for (const std::string& folder : folders) paths_.push_back(folder + "/" + name_);
    }
    ~Probe() {
        for (const std::string& path : paths_) sys::removeTree(path);
        quietly("/containers/" + name_ + "?force=1");
        quietly("/images/" + std::string(kProbeRepository) + ":" + name_ + "?force=1");
    }
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;

    bool succeeds() {
        Json mounts = Json::array();
        for (const std::string& path : paths_) {
            sys::makeDirectory(path, 0700);
            mounts.push_back({{"Type", "bind"},
                              {"Source", path},
                              {"Target", "/" + std::to_string(mounts.size())},
                              {"ReadOnly", true}});
        }
        TarWriter empty;
        empty.add({.name = "empty", .type = TarEntry::Type::Directory, .mode = 0755});
        importRoot(engine_, empty, kProbeRepository, name_, until_);
        try {
            engine_.post("/containers/create?name=" + name_,
                         {{"Image", std::string(kProbeRepository) + ":" + name_},
                          {"Entrypoint", Json::array({"/empty"})},
                          {"HostConfig", {{"NetworkMode", "none"}, {"Mounts", mounts}}}},
                         until_);
        } catch (const Error& e) {
            if (e.code() == ErrorCode::Unsupported) return false;  // it does not see the folders
            throw;
        }
        return true;
    }

private:
    void quietly(const std::string& target) noexcept {
        try {
            engine_.call({.method = "DELETE", .target = target, .body = {}}, until_);
        } catch (const std::exception&) {
            return;  // it was not made, or stays: an empty image is harmless
        }
    }

    EngineClient& engine_;
    const std::string name_;
    const TimePoint until_;
    std::vector<std::string> paths_;
};

std::string otherKernel(EngineClient& engine, TimePoint until) {
    const Json info = engine.get("/info", until);
    const std::string theirs = info.value("KernelVersion", "");
    utsname ours{};
    ::uname(&ours);
    return theirs == ours.release ? "" : theirs;
}

}  // namespace

AgentChoice chooseAgentMode(EngineClient& engine, AgentMode wanted,
                            const std::vector<std::string>& folders, TimePoint until) {
    if (wanted != AgentMode::Auto) return {wanted, "the configuration says so"};
    if (const std::string kernel = otherKernel(engine, until); !kernel.empty()) {
        return {AgentMode::Copy, "the daemon runs under another kernel, " + toUtf8(kernel)};
    }
    if (!Probe(engine, folders, until).succeeds()) {
        return {AgentMode::Copy, "the daemon does not see this machine's files"};
    }
    return {AgentMode::Bind, "the daemon sees this machine's files"};
}

}  // namespace hearth::pool::docker
