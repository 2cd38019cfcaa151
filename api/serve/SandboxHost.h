#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "api/config/ServeConfig.h"
#include "api/serve/FreshFacts.h"
#include "api/serve/PrivilegedSetup.h"
#include "api/serve/standby/Standby.h"
#include "controller/journal/DiskReserve.h"
#include "pool/gpu/GpuHost.h"
#include "pool/runtime/ContainerRuntime.h"

namespace hearth::program {

/// The runtime and the GPUs that sandboxes get, and the lock of the instance's folder, as the
/// privileged set-up prepared them.
class SandboxHost {
public:
    /// `setup` must outlive it. `died` is called if a part that the runtime needs has died.
    SandboxHost(const cli::ServeConfig& config, PrivilegedSetup& setup, const Reports& reports,
                std::function<void()> died);

    pool::ContainerRuntime& runtime() { return *runtime_; }
    pool::GpuHost& gpus() { return *gpus_; }
    pool::RuntimeFacts facts() { return facts_.get(); }
    /// True if a part that the runtime needs has died.
    bool died() const { return died_; }
    /// The budget of the workspaces' disk.
    controller::DiskBudget workspaceDisk() const;
    /// Sets the gauges of the disks, and of the runtime's own parts.
    void measure() const;
    /// Releases the folder, which the ending launcher then removes if it is unused.
    void unlock() { lock_.reset(); }

private:
    void measureDisk(const char* name, const std::string& path) const;

    const cli::ServeConfig& config_;
    const Instance& instance_;
    metrics::Metrics& metrics_;
    std::atomic<bool> died_{false};
    const std::unique_ptr<PreparedRuntime> setup_;
    std::unique_ptr<pool::ContainerRuntime> runtime_;
    FreshFacts facts_;
    Fd lock_;  ///< released before the launcher ends
    const std::unique_ptr<pool::GpuHost> gpus_;
};

}  // namespace hearth::program
