#include "api/serve/SandboxHost.h"

#include <optional>
#include <utility>

#include "api/serve/PartOptions.h"
#include "base/Units.h"

namespace hearth::program {

SandboxHost::SandboxHost(const cli::ServeConfig& config, PrivilegedSetup& setup,
                         const Reports& reports, std::function<void()> died)
    : config_(config),
      instance_(setup.instance),
      metrics_(reports.metrics),
      setup_(std::move(setup.runtime)),
      runtime_(setup_->make({reports.clock, reports.log, reports.metrics,
                             [this, tell = std::move(died)] {
                                 died_ = true;
                                 tell();
                             }})),
      facts_([this] { return runtime_->facts(); }, reports.clock),
      lock_(std::move(setup.lock)),
      gpus_(makeGpus(config, setup.gpus)) {}

controller::DiskBudget SandboxHost::workspaceDisk() const {
    return setup_->usesOurDisk() ? workspaceBudget(config_, instance_) : controller::DiskBudget();
}

void SandboxHost::measure() const {
    const std::string& data = instance_.data_dir;
    measureDisk("state", data + "/state");
    if (setup_->usesOurDisk()) measureDisk("workspaces", data + "/storage");
    setup_->measure(metrics_);
}

void SandboxHost::measureDisk(const char* name, const std::string& path) const {
    const std::optional<controller::DiskSpace> disk = controller::diskSpaceAt(path);
    if (!disk) return;
    const std::uint64_t reserve = parseBytes(*config_.state_reserve).value();
    metrics_.disk(name, static_cast<double>(disk->free),
                  static_cast<double>(controller::DiskReserve::of(*disk, reserve)));
}

}  // namespace hearth::program
