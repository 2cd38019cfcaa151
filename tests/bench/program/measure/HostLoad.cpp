#include "tests/bench/program/measure/HostLoad.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <utility>

#include "tests/bench/program/measure/BenchStop.h"

namespace hearth::cli {
namespace {

constexpr unsigned kSampleMillis = 1'000;

/// Returns the jiffies since boot: all, and those in which a processor had work.
std::pair<std::uint64_t, std::uint64_t> jiffies() {
    std::ifstream file("/proc/stat");
    std::string word;
    file >> word;
    std::uint64_t total = 0;
    std::uint64_t idle = 0;
    for (int i = 0; i < 8; ++i) {
        std::uint64_t value = 0;
        file >> value;
        total += value;
        if (i == 3 || i == 4) idle += value;  // idle, iowait
    }
    return {total, total - idle};
}

}  // namespace

std::array<double, 3> loadAverage() {
    std::array<double, 3> averages{};
    ::getloadavg(averages.data(), 3);
    return averages;
}

double busyShare() {
    const auto [total_before, busy_before] = jiffies();
    BenchStop::sleep(kSampleMillis);
    const auto [total, busy] = jiffies();
    if (total <= total_before) return 0;
    return static_cast<double>(busy - busy_before) / static_cast<double>(total - total_before);
}

unsigned processors() {
    return std::thread::hardware_concurrency();
}

std::string kernelName() {
    struct utsname name {};
    if (::uname(&name) != 0) return "unknown";
    return std::string(name.sysname) + " " + name.release + " " + name.machine;
}

}  // namespace hearth::cli
