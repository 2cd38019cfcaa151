#include "api/serve/GpuSetup.h"

#include <pwd.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "api/serve/process/ProgramPath.h"

namespace hearth::program {
namespace {

/// GPUs that another server uses: this server has none, and absence() says why.
class OthersGpus final : public pool::GpuHost {
public:
    OthersGpus(std::unique_ptr<pool::GpuHost> host, std::string why)
        : host_(std::move(host)), why_(std::move(why)) {}

    std::vector<pool::GpuDevice> devices() const override { return {}; }
    std::string absence() const override {
        return host_->devices().empty() ? host_->absence() : why_;
    }
    pool::GpuScrub scrub(const std::string& /*uuid*/) override { return {false, why_, 0}; }
    void stop() noexcept override { host_->stop(); }

private:
    const std::unique_ptr<pool::GpuHost> host_;
    const std::string why_;
};

}  // namespace

pool::GpuOptions gpuOptions(const cli::ServeConfig& config) {
    pool::GpuOptions options;
    options.helper.program = cli::besideProgram("hearth-gpu");
    options.helper.library = *config.gpu_library;
    options.helper.cuda = *config.cuda_library;
    // Without the account the server does not start; other code reports that.
    const passwd* account = ::geteuid() == 0 ? ::getpwnam(config.user.value.c_str()) : nullptr;
    if (account != nullptr) {
        options.helper.uid = account->pw_uid;
        options.helper.gid = account->pw_gid;
    }
    return options;
}

GpuGround prepareGpus(const cli::ServeConfig& config, const Instance& instance) {
    const pool::gpu::HelperOptions options = gpuOptions(config).helper;
    if (options.library == pool::gpu::kNoLibrary) return {};
    GpuGround ground{pool::gpu::GpuSeat::take(instance, options.library), {}};
    ground.helper = pool::gpu::GpuHelper::start(options);
    return ground;
}

std::unique_ptr<pool::GpuHost> makeGpus(const cli::ServeConfig& config, GpuGround& ground) {
    std::unique_ptr<pool::GpuHost> host =
        pool::makeGpuHost(gpuOptions(config), std::move(ground.helper),
                          ground.seat ? ground.seat->tenure() : pool::GpuTenure());
    if (!ground.seat || ground.seat->taken()) return host;
    return std::make_unique<OthersGpus>(std::move(host), ground.seat->refusal());
}

}  // namespace hearth::program
