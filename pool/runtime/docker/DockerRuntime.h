#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/Mutex.h"
#include "base/host/Instance.h"
#include "pool/image/LayerStore.h"
#include "pool/isolation/SandboxPaths.h"
#include "pool/runtime/ContainerRuntime.h"
#include "pool/runtime/docker/AgentMode.h"
#include "pool/runtime/docker/AgentVolume.h"
#include "pool/runtime/docker/ContainerUsage.h"
#include "pool/runtime/docker/DockerImages.h"
#include "pool/runtime/docker/engine/EngineClient.h"
#include "pool/runtime/docker/remote/RelayPump.h"

namespace hearth::pool {

namespace docker {
class SocketHandover;
}

/// The docker runtime: containers of a Docker daemon, here or on another machine. It needs no root
/// and no launcher, only the daemon's socket. If the daemon sees this machine's files, the agent is
/// mounted and its socket is made here; else the agent is in a volume, and every connection to it
/// is an exec. Agent and tenant are one user inside; PROTOCOL.md describes what separates them and
/// what is weaker than in the embedded runtime. Thread-safe. Concurrent creates and ends are
/// limited, and every call has a deadline.
class DockerRuntime final : public ContainerRuntime {
public:
    /// Queries the daemon first: throws Error if none answers. `engine` was made while its
    /// certificates were readable. `agent_path` is the static agent, copied into the data
    /// directory. The directories of the instance (sockets, start) and `<data>/docker` must exist
    /// and belong to this user. `mode`: how the agent gets into containers.
    DockerRuntime(const Instance& instance, std::unique_ptr<docker::EngineClient> engine,
                  const std::string& agent_path, docker::AgentMode mode);

    Started create(const SandboxId& id, const SandboxSpec& spec) override;
    void destroy(const SandboxId& id) override;
    std::vector<SandboxInfo> list() override;
    std::optional<SandboxInfo> find(const SandboxId& id) override;
    Fd connect(const SandboxId& id) override;
    /// Read from the container's control groups or, if these are not visible, from the daemon,
    /// which does not know the kernel's kills for memory.
    std::optional<SandboxUsage> usage(const SandboxId& id) override;
    /// Uses the Engine's update, one of at most four calls for clients. Without visible control
    /// groups, kills by the kernel are not noticed.
    std::optional<LimitInUse> narrow(const SandboxId& id, const SandboxLimits& limits) override;
    bool freezes() override { return true; }
    bool freeze(const SandboxId& id) override;
    bool thaw(const SandboxId& id) override;
    std::string resolveImage(const std::string& name) override;
    std::optional<std::string> readyImage(const std::string& name) override;
    bool sameImage(const std::string& image, const std::string& wanted) override;
    std::optional<KnownImage> knownImage(const std::string& wanted) override;
    KnownImage fetchImage(const ImageFetch& fetch, ImageStages& stages) override;
    void stopFetching() override { images_.stopFetching(); }
    void collectImages(const std::vector<std::string>& wanted) override;
    /// Error(Unsupported) if the daemon does not see this machine's files.
    std::vector<std::string> layers() override;
    void addLayer(const std::string& digest, int tar) override;
    void removeLayer(const std::string& digest) override;
    /// Sandboxes made since this server started and not destroyed are always kept.
    std::vector<Leftover> sweep(const std::vector<SandboxId>& keep) override;
    RuntimeFacts facts() override;
    const docker::AgentChoice& agentChoice() const noexcept { return agent_; }

    /// The directories that it needs, to be created before root is given up.
    static std::vector<std::string> directories(const Instance& instance);

private:
    struct Container {
        std::string name;
        SandboxInfo info;
        std::string inside;
    };

    bool copies() const { return agent_.mode == docker::AgentMode::Copy; }
    bool making();
    /// Makes the agent of a started container listen: by `handover`, or by an exec.
    void open(const SandboxId& id, docker::SocketHandover& handover, const Fd& listening,
              TimePoint until);
    /// The path of its layer; empty for none.
    std::string layerOf(const SandboxSpec& spec);
    /// Counts a sandbox as made in this process, unless its making fails. Throws Error(Conflict) if
    /// it exists, or is being made.
    class Made {
    public:
        Made(DockerRuntime& runtime, SandboxId id);
        ~Made();
        Made(const Made&) = delete;
        Made& operator=(const Made&) = delete;
        void keep() { kept_ = true; }

    private:
        DockerRuntime& runtime_;
        const SandboxId id_;
        bool kept_ = false;
    };
    void removeUnusedVolumes(TimePoint until);
    std::string startFolder(const SandboxId& id) const { return start_ + "/" + id; }
    std::vector<Container> containers(TimePoint until);
    /// Removes the container and waits until it has gone; a missing one is no error.
    void removeContainer(const SandboxId& id, TimePoint until);
    void removeFiles(const SandboxId& id) const;
    std::vector<Leftover> sweepOnce(const std::set<SandboxId>& keep);
    std::string describeEnd(const SandboxId& id, TimePoint until);
    void readFacts();

    launcher::SandboxPaths names_;
    std::string start_;  ///< folders of SocketHandover
    std::unique_ptr<docker::EngineClient> owned_;
    docker::EngineClient& engine_;
    docker::DockerImages images_;
    docker::ContainerUsage use_;
    docker::Gate creates_;
    docker::Gate destroys_;
    docker::Gate
        claims_;  ///< calls that a client waits for: never queued after a create or a destroy
    image::LayerStore layers_;
    std::string insides_;  ///< all versions of the agent in use
    std::string inside_;   ///< this server's version
    docker::AgentChoice agent_;
    docker::AgentVolume volume_;
    RuntimeFacts facts_;  ///< without images
    Mutex mutex_;
    std::set<SandboxId> made_ HEARTH_GUARDED_BY(mutex_);
    docker::RelayPump pump_;
};

}  // namespace hearth::pool
