#include "pool/agent/program/process/Processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>

#include "base/Fd.h"

namespace hearth::agent {

namespace {

constexpr std::size_t kFewProcesses = 4;

struct Process {
    pid_t pid = 0;
    pid_t parent = 0;
    uid_t uid = 0;
    bool zombie = false;
    bool labelled = false;
};

long field(std::string_view status, std::string_view name) {
    const std::size_t at = status.find(name);
    return at == std::string_view::npos
               ? 0
               : std::strtol(status.data() + at + name.size(), nullptr, 10);
}

/// Checks that the line `Groups:` contains `label`.
bool hasGroup(std::string_view status, gid_t label) {
    const std::size_t at = status.find("\nGroups:");
    if (at == std::string_view::npos) return false;
    const char* p = status.data() + at + 8;
    while (*p != '\n' && *p != '\0') {
        char* end = nullptr;
        if (std::strtoul(p, &end, 10) == label && end != p) return true;
        if (end == p) return false;
        p = end;
        while (*p == ' ' || *p == '\t') ++p;
    }
    return false;
}

/// Checks that the hard limit is `label`.
bool hasLimit(pid_t pid, gid_t label) {
    char path[64];
    std::snprintf(path, sizeof(path), "/proc/%d/limits", pid);
    const Fd fd(open(path, O_RDONLY | O_CLOEXEC));
    char text[4096];
    const ssize_t n = fd ? read(fd.get(), text, sizeof(text) - 1) : 0;
    if (n <= 0) return false;
    text[n] = '\0';
    const char* line = std::strstr(text, "Max file locks");
    if (line == nullptr) return false;
    char* hard = nullptr;
    std::strtoul(line + std::strlen("Max file locks"), &hard, 10);
    return std::strtoul(hard, nullptr, 10) == label;
}

/// Reads every process except this one. The tenant chooses the name in the first line, but /proc
/// escapes its line breaks, so "\nGroups:" can only be the kernel's.
std::vector<Process> readProcesses(Mark mark, gid_t label) {
    std::vector<Process> all;
    DIR* proc = opendir("/proc");
    if (proc == nullptr) return all;
    const pid_t self = getpid();
    while (const dirent* entry = readdir(proc)) {
        const auto pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
        if (pid <= 0 || pid == self) continue;
        char path[64];
        std::snprintf(path, sizeof(path), "/proc/%d/status", pid);
        const Fd fd(open(path, O_RDONLY | O_CLOEXEC));
        if (!fd) continue;
        char text[4096];
        const ssize_t n = read(fd.get(), text, sizeof(text) - 1);
        if (n <= 0) continue;
        text[n] = '\0';
        const std::string_view status(text, static_cast<std::size_t>(n));
        const std::size_t state = status.find("\nState:\t");
        Process p;
        p.pid = pid;
        p.parent = static_cast<pid_t>(field(status, "\nPPid:\t"));
        p.uid = static_cast<uid_t>(field(status, "\nUid:\t"));
        // The kernel also says Z if only a process's first thread has ended and the others run.
        p.zombie = state != std::string_view::npos &&
                   std::strchr("ZX", text[state + 8]) != nullptr &&
                   field(status, "\nThreads:\t") <= 1;
        if (label != 0 && !p.zombie) {
            p.labelled = mark == Mark::Group ? hasGroup(status, label) : hasLimit(pid, label);
        }
        all.push_back(p);
    }
    closedir(proc);
    return all;
}

/// Checks by the parents that `pid` is below `root`.
bool isBelow(const std::map<pid_t, pid_t>& parents, pid_t pid, pid_t root) {
    for (int depth = 0; depth < 10'000; ++depth) {
        if (pid == root) return true;
        const auto found = parents.find(pid);
        if (found == parents.end()) return false;
        pid = found->second;
    }
    return false;
}

}  // namespace

std::vector<pid_t> livingProcesses(const Settings& settings, Mark mark, gid_t label) {
    const std::vector<Process> all = readProcesses(mark, label);
    std::map<pid_t, pid_t> parents;
    // As PID 1 only the label counts. In a test other agents may use the same label, so only the
    // agent's own descendants count: the agent is their subreaper.
    if (!settings.init) {
        for (const Process& p : all) parents[p.pid] = p.parent;
    }
    std::vector<pid_t> found;
    for (const Process& p : all) {
        if (!p.labelled || (!settings.init && !isBelow(parents, p.pid, getpid()))) continue;
        found.push_back(p.pid);
    }
    return found;
}

rusage toldUsage(long long user_us, long long system_us, long long peak_kib) {
    static constexpr long long kMostUs = 1'000'000LL * 60 * 60 * 24 * 365;
    constexpr long long kMostKib = 1LL << 40U;
    const auto time = [](long long us) {
        us = std::clamp(us, 0LL, kMostUs);
        return timeval{us / 1'000'000, us % 1'000'000};
    };
    rusage usage{};
    usage.ru_utime = time(user_us);
    usage.ru_stime = time(system_us);
    usage.ru_maxrss = std::clamp(peak_kib, 0LL, kMostKib);
    return usage;
}

int countTenantProcesses(const Settings& settings) {
    const std::vector<Process> all = readProcesses(settings.mark, 0);
    std::map<pid_t, pid_t> parents;
    if (!settings.init) {
        for (const Process& p : all) parents[p.pid] = p.parent;
    }
    int count = 0;
    for (const Process& p : all) {
        if (p.zombie || p.uid != settings.uid) continue;
        if (settings.init || isBelow(parents, p.pid, getpid())) ++count;
    }
    return count;
}

int killProcesses(const Settings& settings, Mark mark, gid_t label) {
    std::vector<pid_t> found;
    for (int pass = 0; pass < 4; ++pass) {
        found = livingProcesses(settings, mark, label);
        if (found.empty()) return 0;
        // A stopped process forks no more: a fork bomb is frozen before it is killed, or it would
        // fork faster than the kills and take the whole processor.
        std::vector<pid_t> stopped;
        for (int round = 0; round < 16 && found.size() > kFewProcesses; ++round) {
            bool fresh = false;
            for (const pid_t pid : found) {
                if (std::binary_search(stopped.begin(), stopped.end(), pid)) continue;
                fresh = true;
                kill(pid, SIGSTOP);
            }
            if (!fresh) break;
            std::sort(found.begin(), found.end());
            stopped = std::move(found);
            found = livingProcesses(settings, mark, label);
        }
        for (const pid_t pid : found) kill(pid, SIGKILL);
        sched_yield();
    }
    return static_cast<int>(found.size());
}

}  // namespace hearth::agent
