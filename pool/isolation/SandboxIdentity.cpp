#include "pool/isolation/SandboxIdentity.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace hearth::pool::launcher {

Json maskedPaths(const std::vector<std::string>& gpus) {
    const bool mig = std::any_of(gpus.begin(), gpus.end(),
                                 [](const std::string& uuid) { return uuid.starts_with("MIG-"); });
    return Json::array({"/proc/acpi",
                        "/proc/asound",
                        "/proc/kcore",
                        "/proc/keys",
                        "/proc/latency_stats",
                        "/proc/timer_list",
                        "/proc/timer_stats",
                        "/proc/sched_debug",
                        "/proc/scsi",
                        "/sys/firmware",
                        "/proc/key-users",
                        "/proc/kallsyms",
                        "/proc/modules",
                        "/proc/config.gz",
                        "/proc/cmdline",
                        "/proc/interrupts",
                        "/proc/softirqs",
                        "/proc/diskstats",
                        "/proc/partitions",
                        "/proc/slabinfo",
                        "/proc/vmallocinfo",
                        "/proc/pagetypeinfo",
                        "/proc/zoneinfo",
                        "/proc/buddyinfo",
                        "/proc/vmstat",
                        "/proc/iomem",
                        "/proc/ioports",
                        "/proc/kpagecount",
                        "/proc/kpageflags",
                        "/proc/kpagecgroup",
                        "/proc/kmsg",
                        "/proc/locks",
                        "/proc/swaps",
                        "/proc/schedstat",
                        "/proc/pressure",
                        mig ? "/proc/driver/nvidia/gpus" : "/proc/driver",
                        "/proc/tty",
                        "/proc/dynamic_debug",
                        "/proc/fs",
                        "/sys/devices/virtual/powercap",
                        "/sys/kernel"});
}

Json readonlyPaths() {
    return Json::array({"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"});
}

}  // namespace hearth::pool::launcher
