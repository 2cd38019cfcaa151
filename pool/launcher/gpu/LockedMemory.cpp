#include "pool/launcher/gpu/LockedMemory.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/Error.h"

namespace hearth::pool::launcher {

std::uint64_t allowLockedMemory(std::uint64_t bytes) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) throwErrno("getrlimit", "memlock");
    const rlimit wanted{bytes, std::max<rlim_t>(bytes, limit.rlim_max)};
    // Without CAP_SYS_RESOURCE, as in some containers, the inherited limit is the most.
    if (::setrlimit(RLIMIT_MEMLOCK, &wanted) == 0) return bytes;
    return std::min<std::uint64_t>(bytes, limit.rlim_max);
}

}  // namespace hearth::pool::launcher
