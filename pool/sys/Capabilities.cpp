#include "pool/sys/Capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/Error.h"

namespace hearth::sys {

void boundCapabilities(std::span<const int> kept) {
    for (int each = 0; ::prctl(PR_CAPBSET_READ, each, 0, 0, 0) >= 0; ++each) {
        if (std::ranges::find(kept, each) != kept.end()) continue;
        if (::prctl(PR_CAPBSET_DROP, each, 0, 0, 0) != 0 && errno != EPERM) {
            throwErrno("prctl", "bounding set");
        }
    }
}

void holdCapabilities(std::span<const int> kept) {
    std::uint64_t mask = 0;
    for (const int each : kept) mask |= 1ULL << static_cast<unsigned>(each);
    const std::uint32_t words[2] = {static_cast<std::uint32_t>(mask),
                                    static_cast<std::uint32_t>(mask >> 32U)};
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2] = {};
    if (::syscall(SYS_capget, &header, sets) != 0) throwErrno("capget");
    for (int word = 0; word < 2; ++word) {
        sets[word].permitted &= words[word];
        sets[word].effective = sets[word].permitted;
        sets[word].inheritable = 0;
    }
    // There is no ambient set before Linux 4.3.
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL) {
        throwErrno("prctl", "ambient set");
    }
    if (::syscall(SYS_capset, &header, sets) != 0) throwErrno("capset");
}

}  // namespace hearth::sys
