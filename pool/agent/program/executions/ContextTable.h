#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pool/agent/program/executions/Execution.h"

namespace hearth::agent {

/// A stateful interpreter: one process that runs one execution after the other.
class Context final : public ExecutionHost, private DriverListener {
public:
    struct Facts {
        std::string id;
        std::string language;
        std::string file;  ///< the name of its code
        std::string cwd;
        std::vector<std::string> env;
    };

    Context(EventLoop& loop, const Settings& settings, Facts facts);
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    ~Context();

    /// Starts in a process that was forked in advance.
    void startParked(std::unique_ptr<Parked> parked);
    /// Starts in a process of its own. Returns null, or the reason of the failure.
    const char* startCold(std::vector<std::string> argv, gid_t label);
    /// Makes it run code; it must be idle and alive.
    void run(Execution& execution, std::string_view code);
    /// Ends it and every process it started, also the execution in it.
    void end();

    const Facts& facts() const noexcept { return facts_; }
    bool busy() const noexcept { return current_ != nullptr; }
    bool alive() const noexcept { return pid_ > 0; }
    pid_t pid() const noexcept { return pid_; }
    /// Its process is a zygote's child, so the zygote reports its end.
    bool ofZygote() const noexcept { return parked_; }
    bool interrupt() override;
    /// Returns when tick() must be called next; INT64_MAX for never.
    std::int64_t nextTickNs() const noexcept { return again_ns_; }
    void tick(std::int64_t now_ns);
    void reaped(int status, const rusage& usage);
    /// The zygote has died: nobody will report the end of its child, if that has ended.
    void zygoteGone();

    void released() override;

private:
    class Idle;

    void began(Spawned pipes);
    void driverSaid(DriverChannel& channel, std::string_view kind,
                    std::string_view payload) override;
    void driverClosed(DriverChannel& channel) override;
    /// Starts or stops to read its output while nothing runs in it: the next run shows it.
    void watchPipes(bool watch);

    EventLoop& loop_;
    const Settings& settings_;
    const Facts facts_;
    std::unique_ptr<DriverChannel> channel_;
    Spawned pipes_;
    OutputLog between_;  ///< of threads and jobs, since the last run
    bool ran_ = false;
    std::unique_ptr<Idle> idle_output_;
    std::unique_ptr<Idle> idle_errors_;
    pid_t pid_ = -1;
    bool parked_ = false;
    gid_t label_ = 0;
    Mark mark_;
    Execution* current_ = nullptr;
    int again_ = 0;  ///< how often the interrupt is still repeated
    std::int64_t again_ns_ = INT64_MAX;
};

}  // namespace hearth::agent
