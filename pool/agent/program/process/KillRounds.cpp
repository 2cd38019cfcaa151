#include "pool/agent/program/process/KillRounds.h"

#include <unistd.h>

#include <csignal>

#include "pool/agent/program/process/Processes.h"

namespace hearth::agent {

namespace {
constexpr std::int64_t kAgainNs = 5'000'000;
constexpr std::int64_t kAfterAllNs = 1'000'000'000;
constexpr int kRounds = 200;
}  // namespace

void KillRounds::begin(Mark mark, gid_t label) {
    mark_ = mark;
    label_ = label;
    left_ = kRounds;
    next_ns_ = killProcesses(settings_, mark_, label_) > 0 ? nowNs() + kAgainNs : 0;
}

void KillRounds::tick(std::int64_t now_ns) {
    if (!going() || now_ns < next_ns_) return;
    next_ns_ = killProcesses(settings_, mark_, label_) > 0 ? now_ns + kAgainNs : 0;
    if (!going() || --left_ > 0) return;
    // The kills find no end. As PID 1 the agent may kill the whole sandbox.
    if (settings_.init && getpid() == 1) kill(-1, SIGKILL);
    next_ns_ = now_ns + kAfterAllNs;
}

}  // namespace hearth::agent
