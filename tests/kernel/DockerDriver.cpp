#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/Json.h"
#include "base/http/Url.h"
#include "base/tar/TarWriter.h"
#include "pool/runtime/docker/ContainerConfig.h"
#include "pool/runtime/docker/DockerRuntime.h"
#include "pool/sys/Files.h"
#include "tests/kernel/Driver.h"

namespace hearth::kernel_test {
namespace {

namespace docker = pool::docker;
using pool::SandboxId;

constexpr auto kPatience = std::chrono::seconds(60);
constexpr const char* kRepository = "kernel-test";

TimePoint soon() {
    return SystemClock().now() + kPatience;
}

class DockerDriver final : public Driver {
public:
    DockerDriver(const Instance& instance, bool copies)
        : instance_(instance),
          names_(instance),
          mode_(copies ? docker::AgentMode::Copy : docker::AgentMode::Bind),
          engine_(docker::engineAddress()),
          tag_(std::string(kRepository) + ":" + instance.name) {
        for (const std::string& path : pool::DockerRuntime::directories(instance)) {
            std::filesystem::create_directories(path);
        }
    }
    ~DockerDriver() override {
        try {
            remove("/images/" + tag_ + "?force=1");
        } catch (const std::exception&) {
            return;  // the daemon ends with the tests
        }
    }

    void start() override {
        runtime_ = std::make_unique<pool::DockerRuntime>(
            instance_, std::make_unique<docker::EngineClient>(docker::engineAddress()),
            HEARTH_AGENT, mode_);
        if (!prepared_) addProbe(runtime_->resolveImage("shell"));
        prepared_ = true;
    }
    void stop() override { runtime_.reset(); }
    void kill() override { stop(); }
    pid_t launcherPid() override { throw std::logic_error("docker has no launcher"); }
    pool::ContainerRuntime& runtime() override { return *runtime_; }
    pool::SandboxSpec image() override {
        pool::SandboxSpec spec;
        spec.image = tag_;
        return spec;
    }
    pid_t initOf(const SandboxId& id) const override {
        const Json found = engine_.get("/containers/" + names_.container(id) + "/json", soon());
        return found.at("State").at("Pid").get<pid_t>();
    }
    std::vector<std::string> leftovers() const override {
        std::vector<std::string> found;
        for (const std::string& directory : {names_.sockets(), instance_.run_dir + "/start"}) {
            for (const std::string& name : sys::listDirectory(directory)) {
                found.push_back(directory + "/" + name);
            }
        }
        const Json filters{
            {"label", Json::array({std::string(docker::kInstanceLabel) + "=" + instance_.name})}};
        const std::string query = "filters=" + percentEncode(dumpJson(filters));
        for (const Json& item : engine_.get("/containers/json?all=1&" + query, soon())) {
            found.push_back("container " + item.at("Id").get<std::string>());
        }
        const Json volumes = engine_.get("/volumes?" + query, soon()).at("Volumes");
        if (volumes.is_array() && !volumes.empty()) found.push_back("volumes " + dumpJson(volumes));
        for (const Json& item : engine_.get("/images/json", soon())) {
            const std::string text = dumpJson(item.at("RepoTags"));
            if (text.find("hearth/agent") != std::string::npos) found.push_back("image " + text);
        }
        return found;
    }

private:
    /// Makes an image of this instance. The daemon's original image is shared by all tests.
    void addProbe(const std::string& image) {
        const std::string name = std::string(kRepository) + "-" + instance_.name;
        engine_.post("/containers/create?name=" + name,
                     {{"Image", image}, {"Entrypoint", Json::array({"/bin/sh"})}}, soon());
        TarWriter probe;
        probe.add({.name = "probe", .mode = 0755}, sys::readFile(HEARTH_PROBE, 16U << 20U).value());
        probe.end();
        docker::EngineRequest put{
            .method = "PUT", .target = "/containers/" + name + "/archive?path=/bin", .body = {}};
        put.archive = [&](char* out, std::size_t size) { return probe.read(out, size); };
        engine_.call(std::move(put), soon());
        engine_.post(
            "/commit?container=" + name + "&repo=" + kRepository + "&tag=" + instance_.name,
            Json::object(), soon());
        remove("/containers/" + name + "?force=1");
    }

    void remove(const std::string& target) {
        engine_.call({.method = "DELETE", .target = target, .body = {}}, soon());
    }

    Instance instance_;
    pool::launcher::SandboxPaths names_;
    docker::AgentMode mode_;
    mutable docker::EngineClient engine_;
    std::string tag_;
    bool prepared_ = false;
    std::unique_ptr<pool::DockerRuntime> runtime_;
};

}  // namespace

std::unique_ptr<Driver> dockerDriver(const Instance& instance, bool copies) {
    return std::make_unique<DockerDriver>(instance, copies);
}

}  // namespace hearth::kernel_test
