// The functions of CUDA's driver library that Hearth calls, over files: see README.md.

#include <fcntl.h>

#include <algorithm>
#include <csignal>

#include "tests/support/gpu/StandinFiles.h"

using namespace hearth::standin;

namespace {

constexpr int kOk = 0;
constexpr int kNoMemory = 2;
constexpr int kNoDevice = 100;
constexpr int kNoContext = 201;
constexpr int kNoBinary = 209;
constexpr int kNotFound = 500;
constexpr int kBadAddress = 700;
constexpr unsigned long long kBase = 0x10'0000'0000;  // so that no address is an offset by chance
constexpr std::size_t kPiece = 1U << 20U;

/// The one device that CUDA_VISIBLE_DEVICES names.
struct Opened {
    Path folder;
    int memory = -1;
    unsigned long long taken = 0;
} opened;

Path contextFile() {
    return opened.folder / "contexts" / std::to_string(::getpid());
}

unsigned long long totalBytes() {
    return number(opened.folder / "memory", 0);
}

unsigned long long freeBytes() {
    const unsigned long long free = number(opened.folder / "free", totalBytes());
    return free - std::min(free, opened.taken);
}

bool inside(unsigned long long at, unsigned long long bytes) {
    return opened.memory >= 0 && at >= kBase && at - kBase + bytes <= opened.taken;
}

}  // namespace

extern "C" {

int cuInit(unsigned /*flags*/) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    for (const Path& folder : allDevices()) {
        if (visible != nullptr && text(folder / "uuid") == visible && !there(folder / "lost")) {
            opened.folder = folder;
        }
    }
    return opened.folder.empty() ? kNoDevice : kOk;
}

int cuGetErrorString(int result, const char** words) {
    *words =
        result == kNoDevice ? "no CUDA-capable device is detected" : "an error of the stand-in";
    return kOk;
}

int cuDeviceGetCount(int* count) {
    *count = opened.folder.empty() ? 0 : 1;
    return kOk;
}

int cuDeviceGet(int* device, int ordinal) {
    *device = ordinal;
    return ordinal == 0 ? kOk : kNoDevice;
}

int cuDeviceGetUuid_v2(unsigned char* uuid, int /*device*/) {
    std::string digits;
    for (const char c : text(opened.folder / "uuid").value_or("").substr(4)) {
        if (c != '-') digits += c;
    }
    for (std::size_t i = 0; i < 16; ++i) {
        uuid[i] = static_cast<unsigned char>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
    }
    return kOk;
}

int cuCtxCreate_v2(void** context, unsigned /*flags*/, int /*device*/) {
    opened.memory =
        ::open((opened.folder / "memory.bin").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (opened.memory < 0) return kNoDevice;
    if (::ftruncate(opened.memory, static_cast<off_t>(totalBytes())) != 0) return kNoDevice;
    std::error_code none;
    std::filesystem::create_directory(opened.folder / "contexts", none);
    std::ofstream(contextFile()) << "\n";
    *context = &opened;
    return kOk;
}

int cuCtxDestroy_v2(void* /*context*/) {
    ::close(opened.memory);
    opened.memory = -1;
    std::filesystem::remove(contextFile());
    return kOk;
}

int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
    if (opened.memory < 0) return kNoContext;
    *free = freeBytes();
    *total = totalBytes();
    return kOk;
}

int cuMemAlloc_v2(unsigned long long* at, std::size_t bytes) {
    if (opened.memory < 0) return kNoContext;
    const bool fits = bytes <= freeBytes() && bytes <= number(opened.folder / "largest", bytes) &&
                      opened.taken + bytes <= number(opened.folder / "limit", ~0ULL);
    if (!fits) return kNoMemory;
    *at = kBase + opened.taken;
    opened.taken += bytes;
    return kOk;
}

int cuMemFree_v2(unsigned long long at) {
    return inside(at, 1) ? kOk : kBadAddress;
}

int cuMemsetD32_v2(unsigned long long at, unsigned word, std::size_t words) {
    if (!inside(at, words * sizeof(word))) return kBadAddress;
    if (there(opened.folder / "fill-fails")) return kBadAddress;
    const std::vector<unsigned> piece(kPiece / sizeof(word), word);
    std::size_t left = words * sizeof(word);
    for (auto offset = static_cast<off_t>(at - kBase); left > 0;) {
        const ssize_t n = ::pwrite(opened.memory, piece.data(), std::min(left, kPiece), offset);
        if (n <= 0) return kBadAddress;
        left -= static_cast<std::size_t>(n);
        offset += n;
    }
    if (there(opened.folder / "crash-scrub")) ::raise(SIGKILL);
    hangWhile(opened.folder / "hang-scrub");
    return kOk;
}

int cuCtxSynchronize() {
    return opened.memory < 0 ? kNoContext : kOk;
}

int cuMemcpyHtoD_v2(unsigned long long to, const void* from, std::size_t bytes) {
    if (!inside(to, bytes)) return kBadAddress;
    const ssize_t n = ::pwrite(opened.memory, from, bytes, static_cast<off_t>(to - kBase));
    return n == static_cast<ssize_t>(bytes) ? kOk : kBadAddress;
}

int cuMemcpyDtoH_v2(void* to, unsigned long long from, std::size_t bytes) {
    if (!inside(from, bytes)) return kBadAddress;
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t n = ::pread(opened.memory, static_cast<char*>(to) + done, bytes - done,
                                  static_cast<off_t>(from - kBase + done));
        if (n <= 0) return kBadAddress;
        done += static_cast<std::size_t>(n);
    }
    if (there(opened.folder / "mismatch")) static_cast<char*>(to)[bytes / 2] ^= 1;
    return kOk;
}

int cuModuleLoadData(void** module, const void* /*image*/) {
    *module = &opened;
    return there(opened.folder / "no-programs") ? kNoBinary : kOk;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
    *function = module;
    return std::string_view(name) == "matches" ? kOk : kNotFound;
}

/// Does the work of the one program that Hearth loads: counts the words that match.
int cuLaunchKernel(void* /*function*/, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned, void* /*stream*/, void** arguments, void** /*extra*/) {
    const auto at = *static_cast<unsigned long long*>(arguments[0]);
    const auto words = *static_cast<std::uint64_t*>(arguments[1]);
    const auto word = *static_cast<std::uint32_t*>(arguments[2]);
    const auto counter = *static_cast<unsigned long long*>(arguments[3]);
    if (!inside(at, words * sizeof(word)) || !inside(counter, sizeof(words))) return kBadAddress;
    std::vector<std::uint32_t> found(words);
    const auto size = static_cast<ssize_t>(words * sizeof(word));
    if (::pread(opened.memory, found.data(), static_cast<std::size_t>(size),
                static_cast<off_t>(at - kBase)) != size) {
        return kBadAddress;
    }
    const auto same = static_cast<std::uint64_t>(std::ranges::count(found, word));
    const ssize_t n =
        ::pwrite(opened.memory, &same, sizeof(same), static_cast<off_t>(counter - kBase));
    return n == sizeof(same) ? kOk : kBadAddress;
}

}  // extern "C"
