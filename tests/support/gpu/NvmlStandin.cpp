// The functions of NVIDIA's management library that Hearth calls, over files: see README.md.

#include <cstring>
#include <map>
#include <memory>
#include <sstream>

#include "tests/support/gpu/StandinFiles.h"

using namespace hearth::standin;

namespace {

constexpr int kOk = 0;
constexpr int kInvalid = 2;
constexpr int kUnsupported = 3;
constexpr int kForbidden = 4;
constexpr int kUnknownDevice = 6;
constexpr int kTooSmall = 7;
constexpr int kTimeout = 10;
constexpr int kLost = 15;
constexpr unsigned kMostInstances = 7;

struct Memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};
struct Process {
    unsigned pid;
    unsigned long long memory;
    unsigned instance;
    unsigned part;
};
struct Event {
    void* device;
    unsigned long long type;
    unsigned long long data;
    unsigned instance;
    unsigned part;
};

/// Returns the handle of a path: the address of a copy that stays.
void* handleOf(const Path& folder) {
    static std::map<std::string, std::unique_ptr<Path>> handles;
    auto& handle = handles[folder.string()];
    if (!handle) handle = std::make_unique<Path>(folder);
    return handle.get();
}

const Path& folderOf(void* device) {
    return *static_cast<Path*>(device);
}

bool lost(void* device) {
    return there(folderOf(device) / "lost");
}

int copyText(const Path& file, char* to, unsigned size) {
    const std::string words = text(file).value_or("");
    if (words.size() + 1 > size) return kTooSmall;
    std::memcpy(to, words.c_str(), words.size() + 1);
    return kOk;
}

/// Returns the file "processes", and living processes with a context in the other stand-in.
std::string processLines(const Path& folder) {
    std::string lines = text(folder / "processes").value_or("") + "\n";
    if (!there(folder / "contexts")) return lines;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "contexts")) {
        const std::string pid = entry.path().filename();
        if (there("/proc/" + pid)) lines += pid + "\n";
    }
    return lines;
}

int listProcesses(void* device, unsigned* count, Process* found, bool graphics) {
    if (lost(device)) return kLost;
    std::istringstream lines(processLines(folderOf(device)));
    unsigned number = 0;
    for (std::string line; std::getline(lines, line);) {
        const bool draws = line.ends_with(" g");
        if (line.empty() || draws != graphics) continue;
        if (number < *count) found[number] = {static_cast<unsigned>(std::stoul(line)), 0, 0, 0};
        ++number;
    }
    const int result = number > *count ? kTooSmall : kOk;
    *count = number;
    return result;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
    return static_cast<int>(number(root() / "init", kOk));
}

int nvmlShutdown() {
    return kOk;
}

const char* nvmlErrorString(int result) {
    if (result == 9) return "Driver Not Loaded";
    if (result == kLost) return "GPU is lost";
    return "an error of the stand-in";
}

int nvmlDeviceGetCount_v2(unsigned* count) {
    if (there(root() / "crash-look")) ::_exit(42);
    hangWhile(root() / "hang-look");
    if (std::filesystem::remove(root() / "hang-once")) ::pause();
    *count = static_cast<unsigned>(numbered(root(), "gpu").size());
    return kOk;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
    const std::vector<Path> all = numbered(root(), "gpu");
    if (index >= all.size()) return kInvalid;
    if (there(all[index] / "lost")) return kLost;
    *device = handleOf(all[index]);
    return kOk;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
    for (const Path& folder : allDevices()) {
        if (text(folder / "uuid") != uuid) continue;
        if (there(folder / "lost")) return kLost;
        *device = handleOf(folder);
        return kOk;
    }
    return kUnknownDevice;
}

int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size) {
    return copyText(folderOf(device) / "uuid", uuid, size);
}

int nvmlDeviceGetName(void* device, char* name, unsigned size) {
    return copyText(folderOf(device) / "name", name, size);
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
    if (lost(device)) return kLost;
    memory->total = number(folderOf(device) / "memory", 0);
    memory->free = number(folderOf(device) / "free", memory->total);
    memory->used = memory->total - memory->free;
    return kOk;
}

int nvmlDeviceGetMigMode(void* device, unsigned* now, unsigned* pending) {
    *now = there(folderOf(device) / "split") ? 1 : 0;
    *pending = *now;
    return kOk;
}

int nvmlDeviceGetMaxMigDeviceCount(void* /*device*/, unsigned* most) {
    *most = kMostInstances;
    return kOk;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** instance) {
    const std::vector<Path> all = numbered(folderOf(device), "mig");
    if (index >= all.size()) return kUnknownDevice;
    *instance = handleOf(all[index]);
    return kOk;
}

int nvmlDeviceGetGpuInstanceId(void* device, unsigned* id) {
    *id = static_cast<unsigned>(number(folderOf(device) / "instance", 0));
    return kOk;
}

int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* errors) {
    if (lost(device)) return kLost;
    if (there(root() / "no-permission")) return kForbidden;
    const Path file = folderOf(device) / "ecc";
    if (!there(file)) return kUnsupported;
    *errors = type == 1 && counter == 0 ? number(file, 0) : 0;
    return kOk;
}

int nvmlDeviceGetRetiredPagesPendingStatus(void* device, int* pending) {
    *pending = there(folderOf(device) / "retired") ? 1 : 0;
    return kOk;
}

int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
    *corrected = *uncorrected = *pending = 0;
    *failed = there(folderOf(device) / "remap") ? 1 : 0;
    return kOk;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* found) {
    return listProcesses(device, count, found, false);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void* device, unsigned* count, Process* found) {
    return listProcesses(device, count, found, true);
}

int nvmlEventSetCreate(void** set) {
    static char only;
    *set = &only;
    return kOk;
}

int nvmlDeviceGetSupportedEventTypes(void* /*device*/, unsigned long long* types) {
    *types = 8;
    return kOk;
}

int nvmlDeviceRegisterEvents(void* device, unsigned long long types, void* /*set*/) {
    return types == 8 && device != nullptr ? kOk : kInvalid;
}

int nvmlEventSetWait_v2(void* /*set*/, Event* event, unsigned /*milliseconds*/) {
    for (const Path& gpu : numbered(root(), "gpu")) {
        const std::optional<std::string> line = text(gpu / "xid");
        if (!line) continue;
        std::filesystem::remove(gpu / "xid");
        std::istringstream words(*line);
        *event = {handleOf(gpu), 8, 0, ~0U, ~0U};
        words >> event->data;
        if (unsigned instance = 0; words >> instance) event->instance = instance;
        return kOk;
    }
    return kTimeout;
}

}  // extern "C"
