#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/Mutex.h"
#include "base/host/Instance.h"
#include "pool/isolation/SandboxPaths.h"
#include "pool/launcher/LauncherClient.h"
#include "pool/runtime/ContainerRuntime.h"
#include "pool/sys/Cgroups.h"
#include "pool/sys/MemoryPeak.h"

namespace hearth::pool {

/// The embedded runtime: containers on this machine, made by the launcher with runc. Runs in the
/// unprivileged server; only the launcher is root. Thread-safe.
class OciRuntime final : public ContainerRuntime {
public:
    /// `launcher` must outlive the runtime.
    OciRuntime(const Instance& instance, LauncherClient& launcher);

    std::string trouble() const override;
    Started create(const SandboxId& id, const SandboxSpec& spec) override;
    void destroy(const SandboxId& id) override;
    std::vector<SandboxInfo> list() override;
    std::optional<SandboxInfo> find(const SandboxId& id) override;
    Fd connect(const SandboxId& id) override;
    std::optional<SandboxUsage> usage(const SandboxId& id) override;
    std::optional<LimitInUse> narrow(const SandboxId& id, const SandboxLimits& limits) override;
    std::optional<std::uint64_t> takeMemoryPeak(const SandboxId& id) override;
    std::optional<FileTable> fileTable() override;
    std::map<SandboxId, std::uint64_t> openFiles() override;
    bool goFirst(const SandboxId& id, bool first) override;
    bool freezes() override;
    bool freeze(const SandboxId& id) override;
    bool thaw(const SandboxId& id) override;
    std::string resolveImage(const std::string& name) override;
    std::optional<std::string> readyImage(const std::string& name) override;
    bool sameImage(const std::string& image, const std::string& wanted) override;
    std::optional<KnownImage> knownImage(const std::string& wanted) override;
    KnownImage fetchImage(const ImageFetch& fetch, ImageStages& stages) override;
    void stopFetching() override { launcher_.stopFetching(); }
    void finishWithin(std::chrono::milliseconds most) override { launcher_.finishWithin(most); }
    void collectImages(const std::vector<std::string>& wanted) override;
    std::vector<std::string> layers() override;
    void addLayer(const std::string& digest, int tar) override;
    void removeLayer(const std::string& digest) override;
    /// Sandboxes made since this server started and not destroyed are always kept.
    std::vector<Leftover> sweep(const std::vector<SandboxId>& keep) override;
    RuntimeFacts facts() override;

private:
    std::optional<std::string> keep(const std::string& name, image::Image image);
    SandboxInfo infoOf(LauncherClient::Found found) const;

    launcher::SandboxPaths names_;
    LauncherClient& launcher_;
    sys::Cgroups cgroups_;
    Mutex mutex_;
    /// By the pools' names for them.
    std::map<std::string, image::Image> resolved_ HEARTH_GUARDED_BY(mutex_);
    std::map<SandboxId, std::shared_ptr<sys::MemoryPeak>> peaks_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::pool
