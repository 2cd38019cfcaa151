#pragma once

#include <atomic>
#include <cstdint>

namespace hearth::pool {

/// The kernel's counts for each sandbox of one fake runtime. Used by any thread.
struct FakeGroup {
    std::atomic<std::uint64_t> oom_kills = 0;
    std::atomic<std::uint64_t> cpu_ns = 0;
    std::atomic<std::uint64_t> memory_bytes = 0;  ///< 0: as much as its files and 1 MiB
    std::atomic<bool> agents_tell = false;        ///< as the agents of Pods do
};

}  // namespace hearth::pool
