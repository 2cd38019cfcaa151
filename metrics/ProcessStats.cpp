#include "metrics/ProcessStats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/host/HostPressure.h"

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

prometheus::MetricFamily family(const char* name, prometheus::MetricType type, const char* help,
                                double value) {
    prometheus::ClientMetric metric;
    if (type == prometheus::MetricType::Counter) {
        metric.counter.value = value;
    } else {
        metric.gauge.value = value;
    }
    return {name, help, type, {metric}};
}

prometheus::MetricFamily stalls(const HostPressure& since_boot) {
    prometheus::MetricFamily out{
        "hearth_host_pressure_seconds_total",
        "Time since boot in which some task of the machine waited for the resource",
        prometheus::MetricType::Counter,
        {}};
    for (const auto& [resource, seconds] :
         {std::pair("cpu", since_boot.cpu), {"memory", since_boot.memory}, {"io", since_boot.io}}) {
        prometheus::ClientMetric metric;
        metric.label = {{"resource", resource}};
        metric.counter.value = seconds;
        out.metric.push_back(std::move(metric));
    }
    return out;
}

}  // namespace

std::vector<prometheus::MetricFamily> processStats() {
    const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    std::error_code error;
    double open = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator("/proc/self/fd", error)) {
        ++open;
    }
    using prometheus::MetricType;
    const auto gauge = [](const char* name, const char* help, double value) {
        return family(name, MetricType::Gauge, help, value);
    };
    std::vector<prometheus::MetricFamily> all{
        family("process_cpu_seconds_total", MetricType::Counter, "User and system CPU time",
               (statField(14) + statField(15)) / ticks),
        gauge("process_resident_memory_bytes", "Resident memory",
              statField(24) * static_cast<double>(::sysconf(_SC_PAGESIZE))),
        gauge("process_virtual_memory_bytes", "Virtual memory", statField(23)),
        gauge("process_open_fds", "Open file descriptors", open),
        gauge("process_max_fds", "Most open file descriptors", static_cast<double>(files.rlim_cur)),
        gauge("process_threads", "Threads", statField(20)),
        gauge("process_start_time_seconds", "Start, seconds since the epoch",
              bootSeconds() + statField(22) / ticks),
    };
    if (const auto since_boot = hostStalls()) all.push_back(stalls(*since_boot));
    return all;
}

}  // namespace hearth::metrics
