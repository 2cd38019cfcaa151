#include <sys/stat.h>

#include <chrono>
#include <exception>

#include "api/config/Settings.h"
#include "api/serve/process/ProgramPath.h"
#include "api/serve/runtimes/Runtimes.h"
#include "base/Clock.h"
#include "base/Error.h"
#include "pool/runtime/docker/DockerRuntime.h"
#include "pool/runtime/docker/engine/EngineClient.h"

namespace hearth::program {
namespace {

constexpr auto kAnswerWithin = std::chrono::seconds(2);

class PreparedDocker final : public PreparedRuntime {
public:
    PreparedDocker(const Instance& instance, pool::docker::AgentMode agent)
        : instance_(instance),
          agent_(agent),
          engine_(std::make_unique<pool::docker::EngineClient>(pool::docker::engineAddress())) {}

    /// Returns the group that may open the daemon's socket. Its members are root on the daemon's
    /// machine, so keeping the group gives no more rights than using the runtime does.
    std::optional<gid_t> group() const override {
        const std::string& path = engine_->address().socket;
        if (path.empty()) return std::nullopt;
        struct stat status {};
        if (::stat(path.c_str(), &status) != 0) throwErrno("stat", path);
        if ((status.st_mode & S_IWOTH) != 0) return std::nullopt;
        if ((status.st_mode & S_IWGRP) == 0) {
            throw Error(ErrorCode::InvalidArgument,
                        "no group may use the socket " + path + ", and the server is not root")
                .hint("start dockerd with --group docker, or: chmod g+rw " + path);
        }
        return status.st_gid;
    }
    std::unique_ptr<pool::ContainerRuntime> make(const RuntimeParts& parts) override {
        auto docker = std::make_unique<pool::DockerRuntime>(
            instance_, std::move(engine_), cli::besideProgram("hearth-agent"), agent_);
        parts.log.info("docker.agent", {{"mode", cli::agentModeName(docker->agentChoice().mode)},
                                        {"why", docker->agentChoice().reason}});
        return docker;
    }

private:
    const Instance instance_;
    const pool::docker::AgentMode agent_;
    std::unique_ptr<pool::docker::EngineClient> engine_;
};

/// The factory for containers of a Docker Engine: no launcher, and no root.
class DockerFactory final : public RuntimeFactory {
public:
    RuntimeFit fit(const cli::ServeConfig&) const override {
        try {
            pool::docker::EngineClient engine(pool::docker::engineAddress());
            engine.ping(SystemClock().now() + kAnswerWithin);
            return {true, "a Docker Engine answers at " + engine.address().text()};
        } catch (const std::exception& e) {
            return {false, e.what()};
        }
    }
    bool needsRoot() const override { return false; }
    std::unique_ptr<PreparedRuntime> prepare(const cli::ServeConfig& config,
                                             const Instance& instance,
                                             const controller::Account& account) const override {
        auto prepared = std::make_unique<PreparedDocker>(instance, *config.docker_agent);
        makeServerDirectories(instance, account, pool::DockerRuntime::directories(instance));
        return prepared;
    }
};

}  // namespace

std::unique_ptr<RuntimeFactory> makeDockerFactory() {
    return std::make_unique<DockerFactory>();
}

}  // namespace hearth::program
