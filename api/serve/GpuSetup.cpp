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

}  // namespace hearth::program
