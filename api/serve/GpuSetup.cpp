#include "api/serve/GpuSetup.h"

#include <pwd.h>
#include <unistd.h>

#include "api/serve/process/ProgramPath.h"

namespace hearth::program {

pool::GpuOptions gpuOptions(const cli::ServeConfig& config) {
    pool::GpuOptions options;
    options.helper.program = cli::besideProgram("hearth-gpu");
    options.helper.library = *config.gpu_library;
    options.helper.cuda = *config.cuda_library;
    // Without the account there is no server: others say so.
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
    if (ground.seat->taken()) ground.helper = pool::gpu::GpuHelper::start(options);
    return ground;
}

std::unique_ptr<pool::GpuHost> makeGpus(const cli::ServeConfig& config, GpuGround& ground) {
    if (ground.seat && !ground.seat->taken()) {
        return std::make_unique<pool::NoGpus>(ground.seat->refusal());
    }
    return pool::makeGpuHost(gpuOptions(config), std::move(ground.helper),
                             ground.seat ? ground.seat->tenure() : pool::GpuTenure());
}

}  // namespace hearth::program
