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
#include <set>
#include <string_view>

#include "base/Fd.h"

namespace hearth::agent {

namespace {

constexpr std::size_t kFewProcesses = 4;
constexpr int kPasses = 4;
/// The most looks during one standstill: forks that had begun before it move the last number.
constexpr int kStillLooks = 8;

struct Process {
    pid_t pid = 0;
    pid_t parent = 0;
    uid_t uid = 0;
    bool zombie = false;
    bool labelled = false;
    bool held = false;  ///< stopped, and a later SIGSTOP has not been taken: it stood before that
};

long field(std::string_view status, std::string_view name) {
    const std::size_t at = status.find(name);
    return at == std::string_view::npos
               ? 0
               : std::strtol(status.data() + at + name.size(), nullptr, 10);
}

/// Checks that the process is stopped and has a SIGSTOP pending for all its threads.
bool isHeld(std::string_view status, char state) {
    static constexpr std::string_view kPending = "\nShdPnd:\t";
    const std::size_t at = status.find(kPending);
    if (state != 'T' || at == std::string_view::npos) return false;
    const auto pending = std::strtoull(status.data() + at + kPending.size(), nullptr, 16);
    return (pending >> (SIGSTOP - 1) & 1U) != 0;
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
        p.held = state != std::string_view::npos && isHeld(status, text[state + 8]);
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

namespace {

/// Kills the processes that carry the label, without a proof that it saw all.
int killVisible(const Settings& settings, Mark mark, gid_t label) {
    std::vector<pid_t> found;
    for (int pass = 0; pass < kPasses; ++pass) {
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

/// Returns the number that the namespace's newest process or thread got; 0 if that is unknown.
long lastNumber() {
    const Fd fd(open("/proc/loadavg", O_RDONLY | O_CLOEXEC));
    char text[128];
    const ssize_t n = fd ? read(fd.get(), text, sizeof(text) - 1) : 0;
    if (n <= 0) return 0;
    text[n] = '\0';
    const char* last = std::strrchr(text, ' ');
    return last == nullptr ? 0 : std::strtol(last, nullptr, 10);
}

/// Ends a standstill for all but those in `held`. The last started come first, so that no parent
/// that goes on sees a child that still stands.
void resume(const std::vector<Process>& all, const std::set<pid_t>& held) {
    std::set<pid_t> groups;  // with one of `held` in them
    for (const pid_t pid : held) groups.insert(getpgid(pid));
    for (std::size_t i = all.size(); i-- > 0;) {
        if (!all[i].zombie && held.count(all[i].pid) == 0) kill(all[i].pid, SIGCONT);
    }
    // A fork on its way takes the stop along: only a signal to many reaches its child.
    if (held.empty()) {
        kill(-1, SIGCONT);
        return;
    }
    for (const Process& p : all) {
        const pid_t group = getpgid(p.pid);
        if (group > 1 && groups.insert(group).second) kill(-group, SIGCONT);
    }
}

/// One look at all processes while they stand still.
struct StillLook {
    std::size_t living = 0;  ///< with the label; they have SIGKILL
    bool complete = false;   ///< no other can carry the label, now or later
};

/// Stops the whole PID namespace, kills the processes that carry the label, and lets the others go
/// on. The kernel delivers a signal to many also to the children of forks on their way
/// (kernel/fork.c, `multiprocess`), so no process can hop from the look by forking.
StillLook killAtStandstill(Mark mark, gid_t label) {
    StillLook look;
    std::vector<Process> all;
    std::set<pid_t> held;
    std::set<pid_t> killed;
    kill(-1, SIGSTOP);
    for (int pass = 0; pass < kStillLooks && !look.complete; ++pass) {
        const long last = lastNumber();
        all = readProcesses(mark, label);
        look.living = 0;
        bool fresh = false;
        for (const Process& p : all) {
            if (pass == 0 && p.held) held.insert(p.pid);
            if (!p.labelled) continue;
            ++look.living;
            if (!killed.insert(p.pid).second) continue;
            kill(p.pid, SIGKILL);
            fresh = true;
        }
        // The first look may miss the child of a fork on its way, and a SIGCONT on its way may end
        // the standstill: a new process has a new number.
        look.complete = pass > 0 && !fresh && lastNumber() == last;
    }
    resume(all, held);
    return look;
}

}  // namespace

int killProcesses(const Settings& settings, Mark mark, gid_t label) {
    // Outside a namespace of its own the agent signals nothing that is not its descendant.
    if (!settings.init || getpid() != 1) return killVisible(settings, mark, label);
    std::set<pid_t> killed;
    std::vector<pid_t> found;
    bool complete = false;
    for (int pass = 0; pass < kPasses; ++pass) {
        const long last = lastNumber();
        found = livingProcesses(settings, mark, label);
        bool fresh = false;
        for (const pid_t pid : found) {
            if (!killed.insert(pid).second) continue;
            kill(pid, SIGKILL);
            fresh = true;
        }
        if (found.empty()) {
            if (complete) return 0;
            // Two looks without a new process between them miss none. The second finds the child of
            // a fork that had begun before the first.
            if (livingProcesses(settings, mark, label).empty() && last > 0 && lastNumber() == last)
                return 0;
        }
        if (!complete && (found.empty() || (fresh && pass > 0))) {
            const StillLook look = killAtStandstill(mark, label);
            complete = look.complete;
            if (complete && look.living == 0) return 0;
        }
        sched_yield();
    }
    return std::max(static_cast<int>(found.size()), 1);
}

}  // namespace hearth::agent
