#include "pool/agent/program/process/BusError.h"

#include <sys/statvfs.h>

#include <cstdint>

#include "pool/agent/program/core/JsonValue.h"

namespace hearth::agent {

namespace {

/// A file system may keep a few blocks that no file gets.
constexpr std::uint64_t kNoRoom = 64U << 10U;

}  // namespace

std::string busErrorReport(const Settings& settings) {
    std::string full;
    std::string all;
    for (const std::string& path : {std::string("/dev/shm"), std::string("/tmp"), settings.root}) {
        struct statvfs fs {};
        if (statvfs(path.c_str(), &fs) != 0) continue;
        const std::uint64_t mib = fs.f_blocks * fs.f_frsize >> 20U;
        const std::string name = path + " (" + std::to_string(mib) + " MiB)";
        all += (all.empty() ? "" : ", ") + name;
        if (fs.f_bavail * fs.f_frsize < kNoRoom) full += (full.empty() ? "" : ", ") + name;
    }
    JsonValue report = JsonValue::object();
    report.set("name", "SIGBUS").set("traceback", "");
    report.set("message", full.empty()
                              ? "a page of a mapped file could not be made: its file system was "
                                "full, or the file became shorter; the file systems are " +
                                    all
                              : "a page of a mapped file could not be made; full: " + full);
    return report.dump();
}

}  // namespace hearth::agent
