#include "pool/agent/program/executions/ExecutionOutcome.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdint>

#include "pool/agent/program/process/BusError.h"
#include "pool/agent/protocol/Frame.h"

namespace hearth::agent {

namespace {
/// A shell ends with this and the number of the signal that ended its command.
constexpr int kShellSignal = 128;

std::int64_t cpuMs(const rusage& used) {
    const auto of = [](const timeval& t) { return t.tv_sec * 1'000 + t.tv_usec / 1'000; };
    return static_cast<std::int64_t>(of(used.ru_utime) + of(used.ru_stime));
}
}  // namespace

void ExecutionOutcome::ended(const Settings& settings, int status, const rusage& usage) {
    status_ = status;
    usage_ = usage;
    const bool bus = WIFSIGNALED(status) ? WTERMSIG(status) == SIGBUS
                                         : WEXITSTATUS(status) == kShellSignal + SIGBUS;
    if (bus && report_.empty()) report_ = busErrorReport(settings);
    // Control characters become six times longer in JSON; a result must fit into a frame.
    if (JsonValue(report_).dump().size() > kMaxPayload / 2) {
        report_ = R"({"name":"Error","message":"its report is too long"})";
    }
}

void ExecutionOutcome::addTo(JsonValue& result) const {
    const bool by_signal = WIFSIGNALED(status_);
    const int number = by_signal ? WTERMSIG(status_) : 0;
    const int code = by_signal ? 128 + number : WEXITSTATUS(status_);
    const char* status = timed_out_  ? "timeout"
                         : by_signal ? "killed"
                         : code != 0 ? "failed"
                                     : "ok";
    result.set("status", status).set("exitCode", code).set("signal", number);
    result.set("cpuMs", cpuMs(usage_) + cpuMs(preparation_));
    result.set(
        "maxRssBytes",
        static_cast<std::int64_t>(std::max(usage_.ru_maxrss, preparation_.ru_maxrss)) * 1'024);
    if (!report_.empty()) result.set("report", report_);
}

}  // namespace hearth::agent
