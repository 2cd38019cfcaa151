#include "pool/sys/StoppedHolder.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "pool/sys/Files.h"
#include "pool/sys/Process.h"

namespace hearth::sys {
namespace {

std::optional<pid_t> pidIn(const std::string& lock) {
    const std::string text = readFile(lock, 32).value_or("");
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (error != std::errc{} || end == text.data() || pid <= 1) return std::nullopt;
    return pid;
}

bool holds(pid_t pid, const std::string& file) {
    struct stat wanted {};
    if (::lstat(file.c_str(), &wanted) != 0) return false;
    const std::string descriptors = "/proc/" + std::to_string(pid) + "/fd";
    const std::vector<std::string> all = listDirectory(descriptors);
    return std::any_of(all.begin(), all.end(), [&](const std::string& name) {
        struct stat status {};
        return ::stat((descriptors + "/" + name).c_str(), &status) == 0 &&
               status.st_dev == wanted.st_dev && status.st_ino == wanted.st_ino;
    });
}

bool isStopped(pid_t pid) {
    const std::string stat = readFile("/proc/" + std::to_string(pid) + "/stat", 4096).value_or("");
    // The name, in brackets, may hold anything.
    const std::size_t bracket = stat.rfind(')');
    if (bracket == std::string::npos || bracket + 2 >= stat.size()) return false;
    return stat[bracket + 2] == 'T' || stat[bracket + 2] == 't';
}

}  // namespace

bool killStoppedHolder(const std::string& lock) {
    const std::optional<pid_t> pid = pidIn(lock);
    if (!pid) return false;
    // Opened before the checks, so that the pid cannot be reused.
    const std::optional<Process> process = Process::open(*pid);
    if (!process || !isStopped(*pid) || !holds(*pid, lock)) return false;
    process->kill();
    return true;
}

}  // namespace hearth::sys
