#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth::cli {

/// The memory of one process of Hearth.
struct ProcessMemory {
    pid_t pid = 0;
    std::string role;  ///< "server" or "launcher"
    std::uint64_t pss_bytes = 0;
};

/// Returns the memory of the server (`pid`, or every `hearth serve` of the machine) and its
/// launcher as proportional set size. Processes with unreadable memory are left out.
std::vector<ProcessMemory> hearthMemory(std::optional<pid_t> pid);

/// The memory of the processes of some sandboxes.
struct SandboxMemory {
    std::size_t sandboxes = 0;  ///< the requested ones found on this machine
    std::uint64_t pss_bytes = 0;
    std::size_t processes = 0;
};

/// Returns the memory of these sandboxes' agents and their descendants as proportional set size:
/// shared pages are counted once, divided among their users.
SandboxMemory sandboxMemory(const std::vector<std::string>& sandboxes);

/// Returns the bytes that programs can still get; nullopt if the kernel does not report them.
std::optional<std::uint64_t> availableMemory();
/// Returns all memory that the kernel holds for processes: anonymous and shared memory, slabs,
/// kernel stacks, page tables, vmalloc and per-processor data. Sandboxes cost its growth in all.
std::uint64_t kernelInclusiveMemory();

/// Returns a field of /proc/meminfo in bytes, from its text; 0 if absent.
std::uint64_t meminfoField(const std::string& text, const std::string& name);

}  // namespace hearth::cli
