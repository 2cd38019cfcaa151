#include "pool/isolation/OpenFiles.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/Error.h"
#include "pool/spec/FileLimits.h"

namespace hearth::pool::launcher {

std::uint64_t mostOpenFiles() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) throwErrno("getrlimit", "nofile");
    return std::min<std::uint64_t>(kMostOpenFiles, limit.rlim_max);
}

}  // namespace hearth::pool::launcher
