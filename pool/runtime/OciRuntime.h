#pragma once

#include <string>
#include <vector>

#include "base/Instance.h"
#include "pool/launcher/LauncherClient.h"
#include "pool/launcher/Names.h"
#include "pool/runtime/ContainerRuntime.h"
#include "pool/sys/Cgroups.h"

namespace hearth::pool {

/// The embedded runtime: containers on this machine, made by the launcher with runc. Runs in the
/// unprivileged server; only the launcher is root. Thread-safe.
class OciRuntime final : public ContainerRuntime {
public:
    /// `launcher` must outlive the runtime.
    OciRuntime(const Instance& instance, LauncherClient& launcher);

    Started create(const SandboxId& id, const SandboxSpec& spec) override;
    void destroy(const SandboxId& id) override;
    std::vector<SandboxInfo> list() override;
    Fd connect(const SandboxId& id) override;
    std::optional<SandboxUsage> usage(const SandboxId& id) override;
    std::string resolveImage(const std::string& name) override;
    /// What was made since this server started and not destroyed is kept in any case.
    void sweep(const std::vector<SandboxId>& keep) override;
    RuntimeFacts facts() override;

private:
    launcher::Names names_;
    LauncherClient& launcher_;
    sys::Cgroups cgroups_;
};

}  // namespace hearth::pool
