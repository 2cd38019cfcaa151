#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth::cli {

/// What one process of Hearth's holds.
struct ProcessMemory {
    pid_t pid = 0;
    std::string role;  ///< "server" or "launcher"
    std::uint64_t pss_bytes = 0;
};

/// The server (`pid`, or every `hearth serve` of the machine) and its launcher, by proportional set
/// size. Processes whose memory may not be read are left out.
std::vector<ProcessMemory> hearthMemory(std::optional<pid_t> pid);

/// What the processes of some sandboxes hold.
struct SandboxMemory {
    std::size_t sandboxes = 0;  ///< of those asked for, found on this machine
    std::uint64_t pss_bytes = 0;
    std::size_t processes = 0;
};

/// The agents of those sandboxes and everything they started, by proportional set size: shared
/// pages are counted once, spread over who shares them.
SandboxMemory sandboxMemory(const std::vector<std::string>& sandboxes);

/// Bytes that programs could still get; nullopt where the kernel does not say.
std::optional<std::uint64_t> availableMemory();
/// Everything the kernel holds for processes: anonymous and shared memory, slabs, kernel stacks,
/// page tables, vmalloc and per-processor data. Its growth is what sandboxes cost in all.
std::uint64_t kernelInclusiveMemory();

/// A field of /proc/meminfo in bytes, from its text; 0 where absent.
std::uint64_t meminfoField(const std::string& text, const std::string& name);

}  // namespace hearth::cli
