#include "metrics/ProcessStats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace hearth::metrics {
namespace {

/// Field `number` (from 1, as in proc(5)) of /proc/self/stat, for fields after the command name.
double statField(int number) {
    std::ifstream file("/proc/self/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t after = line.rfind(')');
    if (after == std::string::npos) return 0;
    std::istringstream fields(line.substr(after + 2));
    std::string value;
    for (int i = 3; i <= number; ++i) fields >> value;
    return value.empty() ? 0 : std::stod(value);
}

double bootSeconds() {
    std::ifstream file("/proc/stat");
    std::string word;
    while (file >> word) {
        if (word == "btime") {
            double seconds = 0;
            file >> seconds;
            return seconds;
        }
    }
    return 0;
}

void write(std::ostream& out, const char* name, const char* type, const char* help, double value) {
    out << "# HELP " << name << ' ' << help << "\n# TYPE " << name << ' ' << type << '\n'
        << name << ' ' << value << '\n';
}

}  // namespace

std::string renderProcessStats() {
    const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    std::error_code error;
    double open = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator("/proc/self/fd", error)) {
        ++open;
    }
    std::ostringstream out;
    out.precision(17);
    write(out, "process_cpu_seconds_total", "counter", "User and system CPU time",
          (statField(14) + statField(15)) / ticks);
    write(out, "process_resident_memory_bytes", "gauge", "Resident memory",
          statField(24) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
    write(out, "process_virtual_memory_bytes", "gauge", "Virtual memory", statField(23));
    write(out, "process_open_fds", "gauge", "Open file descriptors", open);
    write(out, "process_max_fds", "gauge", "Most open file descriptors",
          static_cast<double>(files.rlim_cur));
    write(out, "process_threads", "gauge", "Threads", statField(20));
    write(out, "process_start_time_seconds", "gauge", "Start, seconds since the epoch",
          bootSeconds() + statField(22) / ticks);
    return out.str();
}

}  // namespace hearth::metrics
