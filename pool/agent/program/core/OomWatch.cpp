#include "pool/agent/program/core/OomWatch.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string_view>

#include "base/Fd.h"

namespace hearth::agent {

namespace {

constexpr const char* kOwn = "/proc/self/oom_score_adj";
constexpr int kLeastOfTenants = 950;  // a zygote's
constexpr std::string_view kTenantScore = "1000";
constexpr std::int64_t kEveryNs = 1'000'000'000;
constexpr std::int64_t kFirstAfterNs = 50'000'000;

bool writeTo(const char* path, std::string_view text) {
    const Fd fd(open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
    return fd && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

bool sinkOomScore(std::string& own) {
    if (!readFile(kOwn, 16, own)) return false;
    const int begin = std::atoi(own.c_str());
    for (int down = begin; down > 0; down /= 2) {
        const std::string lower = std::to_string(begin - down);
        if (!writeTo(kOwn, lower)) continue;
        own = lower;
        return true;
    }
    return false;
}

int raiseOomScores(const Settings& settings, const std::string& proc) {
    DIR* directory = opendir(proc.c_str());
    if (directory == nullptr) return 0;
    int raised = 0;
    const long self = getpid();
    while (const dirent* entry = readdir(directory)) {
        const long pid = std::strtol(entry->d_name, nullptr, 10);
        if (pid <= 0 || pid == self) continue;
        const std::string path = proc + "/" + entry->d_name + "/oom_score_adj";
        std::string score;
        if (!readFile(path.c_str(), 16, score) || std::atoi(score.c_str()) >= kLeastOfTenants) {
            continue;
        }
        // A process that is not dumpable belongs to root, as this one does; others to the tenant.
        bool done = writeTo(path.c_str(), kTenantScore);
        if (!done) {
            const TenantFiles as_tenant(settings);
            done = writeTo(path.c_str(), kTenantScore);
        }
        raised += done ? 1 : 0;
    }
    closedir(directory);
    return raised;
}

std::int64_t OomWatch::nextTickNs(bool on) const noexcept {
    return on && settings_.watch_scores ? next_ns_ : INT64_MAX;
}

void OomWatch::tick(std::int64_t now_ns, bool on) {
    if (now_ns < nextTickNs(on)) return;
    if (next_ns_ == 0) {
        next_ns_ = now_ns + kFirstAfterNs;
        return;
    }
    raiseOomScores(settings_, "/proc");
    next_ns_ = now_ns + kEveryNs;
}

}  // namespace hearth::agent
