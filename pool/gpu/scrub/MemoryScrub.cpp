#include "pool/gpu/scrub/MemoryScrub.h"

#include <algorithm>
#include <fstream>
#include <thread>
#include <vector>

#include "pool/gpu/scrub/Cuda.h"

namespace hearth::pool::gpu {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;
constexpr std::uint64_t kLeastChunk = kMiB;
constexpr std::uint64_t kGranule = 2 * kMiB;  // drivers give memory in pages of this size
constexpr std::uint64_t kBlock = 32 * kMiB;   // filled with one word and compared at once
constexpr std::uint64_t kSample = 4096;       // bytes of each block that are read to the host
constexpr std::uint64_t kLeastCovered = 90;   // percent of the free memory
constexpr std::uint64_t kLeastFree = 75;      // percent of all memory, if no process uses any
constexpr auto kProcessLook = std::chrono::milliseconds(100);
constexpr std::size_t kMostNamed = 8;

std::string inMiB(std::uint64_t bytes) {
    return std::to_string(bytes / kMiB) + " MiB";
}

std::string processNames(const std::vector<Nvml::Process>& processes) {
    std::string names;
    for (std::size_t i = 0; i < processes.size() && i < kMostNamed; ++i) {
        std::string word;
        std::ifstream comm("/proc/" + std::to_string(processes[i].pid) + "/comm");
        std::getline(comm, word);
        names += (i == 0 ? "" : ", ") + std::to_string(processes[i].pid);
        if (!word.empty()) names += " (" + word + ")";
    }
    if (processes.size() > kMostNamed) {
        names += " and " + std::to_string(processes.size() - kMostNamed) + " more";
    }
    return names;
}

/// Throws if processes stay.
void awaitNoProcess(const Nvml& nvml, const ScrubOrder& order) {
    const Nvml::Device device = nvml.byUuid(order.uuid);
    const auto end = std::chrono::steady_clock::now() + order.process_wait;
    for (;;) {
        const std::vector<Nvml::Process> left = nvml.processes(device);
        if (left.empty()) return;
        if (std::chrono::steady_clock::now() >= end) {
            throw std::runtime_error("still used after " +
                                     std::to_string(order.process_wait.count() / 1000) +
                                     " s by process " + processNames(left));
        }
        std::this_thread::sleep_for(kProcessLook);
    }
}

struct Chunk {
    Cuda::Address at = 0;
    std::uint64_t bytes = 0;
};

/// Takes all available memory, in pieces as large as the driver gives them.
std::vector<Chunk> takeAll(const Cuda& cuda, const Cuda::Memory& memory) {
    std::vector<Chunk> chunks;
    std::uint64_t taken = 0;
    std::uint64_t size = std::max(memory.free / kGranule * kGranule, kLeastChunk);
    while (size >= kLeastChunk) {
        // Beyond the total it would be memory of the host.
        const bool fits = taken + size <= memory.total;
        const std::optional<Cuda::Address> at = fits ? cuda.allocate(size) : std::nullopt;
        if (at) {
            chunks.push_back({*at, size});
            taken += size;
        } else {
            size = size / 2 / kLeastChunk * kLeastChunk;
        }
    }
    return chunks;
}

/// Returns a different word for each block, so that two blocks at one place of the device show.
std::uint32_t wordOf(std::uint64_t block) {
    return 0x9e3779b9U * static_cast<std::uint32_t>(block + 1) ^ 0xa5a5a5a5U;
}

/// Calls `visit` with address, size and word of each block.
template <typename Visit>
void eachBlock(const std::vector<Chunk>& chunks, const Visit& visit) {
    std::uint64_t block = 0;
    for (const Chunk& chunk : chunks) {
        for (std::uint64_t done = 0; done < chunk.bytes; done += kBlock) {
            visit(chunk.at + done, std::min(kBlock, chunk.bytes - done), wordOf(block++));
        }
    }
}

/// Reads the words back to the host and compares them there.
void compareHere(const Cuda& cuda, Cuda::Address at, std::uint64_t bytes, std::uint32_t word,
                 std::vector<std::uint32_t>& buffer) {
    buffer.resize(bytes / sizeof(word));
    std::ranges::fill(buffer, ~word);  // nothing of an earlier block can pass for this one
    cuda.read(buffer.data(), at, bytes);
    const auto wrong =
        std::ranges::count_if(buffer, [word](std::uint32_t found) { return found != word; });
    if (wrong != 0) {
        throw std::runtime_error(
            "its memory does not hold what is written to it: " + std::to_string(wrong) + " of " +
            std::to_string(buffer.size()) + " words of a block read back wrong");
    }
}

/// Returns memory in which the device counts, after a proof that it can; nullopt if every word has
/// to come to the host.
std::optional<Cuda::Address> provenCounter(Cuda& cuda, Cuda::Address page) {
    constexpr std::uint64_t kWords = kGranule / 2 / sizeof(std::uint32_t);
    const Cuda::Address probe = page + kGranule / 2;
    const std::uint32_t word = wordOf(0);
    cuda.fill(probe, word, kWords);
    const bool proven = cuda.matches(probe, word, kWords, page) == kWords &&
                        cuda.matches(probe, ~word, kWords, page) == 0;
    return proven ? std::optional(page) : std::nullopt;
}

/// The device itself compares all words, at the speed of its own memory, and a few come to the
/// host. If it does not find all of them, all come to the host, whose result counts.
void compare(Cuda& cuda, const std::optional<Cuda::Address>& counter, Cuda::Address at,
             std::uint64_t bytes, std::uint32_t word, std::vector<std::uint32_t>& buffer) {
    const std::uint64_t words = bytes / sizeof(word);
    const bool same = counter && cuda.matches(at, word, words, *counter) == words;
    compareHere(cuda, at, same ? std::min(bytes, kSample) : bytes, word, buffer);
}

GpuScrub overwrite(Cuda& cuda) {
    const Cuda::Memory memory = cuda.memory();
    if (memory.free < memory.total / 100 * kLeastFree) {
        return {false,
                "only " + inMiB(memory.free) + " of its " + inMiB(memory.total) +
                    " are free though no process uses it",
                0};
    }
    const std::optional<Cuda::Address> page = cuda.allocate(kGranule);
    if (!page) return {false, "it has not even " + inMiB(kGranule) + " to give", 0};
    const std::optional<Cuda::Address> counter = provenCounter(cuda, *page);
    const std::vector<Chunk> chunks = takeAll(cuda, cuda.memory());
    std::vector<std::uint32_t> buffer;
    eachBlock(chunks, [&](Cuda::Address at, std::uint64_t bytes, std::uint32_t word) {
        cuda.fill(at, word, bytes / sizeof(word));
    });
    GpuScrub scrub;
    eachBlock(chunks, [&](Cuda::Address at, std::uint64_t bytes, std::uint32_t word) {
        compare(cuda, counter, at, bytes, word, buffer);
        scrub.bytes += bytes;
    });
    cuda.fill(*page, 0, kGranule / sizeof(std::uint32_t));
    compareHere(cuda, *page, kGranule, 0, buffer);
    scrub.bytes += kGranule;
    eachBlock(chunks, [&](Cuda::Address at, std::uint64_t bytes, std::uint32_t /*word*/) {
        cuda.fill(at, 0, bytes / sizeof(std::uint32_t));
    });
    for (const Chunk& chunk : chunks) cuda.free(chunk.at);
    cuda.free(*page);
    scrub.clean = scrub.bytes >= memory.free / 100 * kLeastCovered;
    if (!scrub.clean) {
        scrub.why = "only " + inMiB(scrub.bytes) + " of " + inMiB(memory.free) +
                    " free memory could be overwritten; at least " + std::to_string(kLeastCovered) +
                    " % must be";
    }
    return scrub;
}

}  // namespace

GpuScrub scrubDevice(const Nvml& nvml, const ScrubOrder& order) {
    try {
        awaitNoProcess(nvml, order);
        Cuda cuda(order.cuda, order.uuid);
        return overwrite(cuda);
    } catch (const std::exception& e) {
        return {false, e.what(), 0};
    }
}

}  // namespace hearth::pool::gpu
