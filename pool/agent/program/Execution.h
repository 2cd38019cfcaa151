#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pool/agent/OutputLog.h"
#include "pool/agent/program/Connection.h"
#include "pool/agent/program/Loop.h"
#include "pool/agent/program/Processes.h"
#include "pool/agent/program/Scratch.h"
#include "pool/agent/program/Settings.h"
#include "pool/agent/program/Spawn.h"

namespace hearth::agent {

class Execution;

/// What an execution tells its table.
class ExecutionOwner {
public:
    virtual void finished(Execution& execution) = 0;
    /// Somebody gave it input.
    virtual void active() = 0;
    /// A pipe that processes left behind still hold: read and thrown away until they end, so that
    /// they neither block nor die of it.
    virtual void drain(Fd pipe) = 0;

protected:
    ~ExecutionOwner() = default;
};

/// The stream of one `exec` or `attach`: output by credit, and input.
class OutputStream final : public Stream {
public:
    OutputStream(Connection& connection, std::uint32_t id, Execution& execution,
                 std::uint64_t from);
    ~OutputStream() override { detach(); }
    void data(std::string_view bytes) override;
    void end() override;
    void credit(std::uint32_t bytes) override;
    void detach() override;
    void pump() override;

private:
    friend class Execution;
    Connection& connection_;
    std::uint32_t id_;
    Execution* execution_;
    std::uint64_t cursor_;
    std::uint64_t credit_ = kInitialCredit;
    std::string input_;  ///< at most kInitialCredit: the client's window
    bool input_ended_ = false;
};

/// One command: its processes, pipes, output and result. It reads its pipes whether or not anybody
/// listens, and ends when its first process does, not when the pipes close.
class Execution {
public:
    struct Request {
        std::string id;
        std::string fingerprint;
        SpawnRequest spawn;
        std::int64_t timeout_ms = 0;
        std::size_t output_limit = 0;
        bool background = false;
    };

    Execution(Loop& loop, const Settings& settings, ExecutionOwner& owner, Request request,
              std::unique_ptr<Scratch> scratch);
    Execution(const Execution&) = delete;
    Execution& operator=(const Execution&) = delete;
    ~Execution();

    /// Null, or why nothing was started.
    const char* start();

    const std::string& id() const noexcept { return request_.id; }
    const std::string& fingerprint() const noexcept { return request_.fingerprint; }
    bool background() const noexcept { return request_.background; }
    pid_t pid() const noexcept { return pid_; }
    std::int64_t startedAtNs() const noexcept { return started_ns_; }
    bool finished() const noexcept { return finished_; }
    bool watched() const noexcept { return !streams_.empty(); }
    std::size_t streams() const noexcept { return streams_.size(); }
    /// Set by `forget` while it runs: goes when it ends.
    bool forgotten = false;

    /// Its first process has been reaped.
    void reaped(int status, const rusage& usage);
    /// To the process group; SIGKILL reaches every descendant. False if there is nothing to signal.
    bool signal(int number);
    void resize(unsigned short cols, unsigned short rows);
    /// Kills every process it ever started.
    void killAll();

    /// When tick() wants to be called next; INT64_MAX for never.
    std::int64_t nextTickNs() const noexcept;
    void tick(std::int64_t now_ns);

    Value startedNote(bool repeated) const;
    Value result() const;

private:
    friend class OutputStream;
    class Pipe;

    void readable(Pipe& pipe);
    void wroteOff(std::unique_ptr<Pipe>& pipe);
    /// Reads what is there; true at end of file.
    bool drainPipe(Pipe& pipe, int rounds);
    void feed();
    void closeInput();
    void pumpStreams();
    void finishIfDone();
    void finish();

    Loop& loop_;
    const Settings& settings_;
    ExecutionOwner& owner_;
    Request request_;
    std::unique_ptr<Scratch> scratch_;
    OutputLog log_;
    pid_t pid_ = -1;
    std::unique_ptr<Pipe> input_;
    std::unique_ptr<Pipe> output_;
    std::unique_ptr<Pipe> errors_;
    std::vector<OutputStream*> streams_;
    std::string left_input_;  ///< of streams that went away
    std::int64_t started_ns_ = 0;
    std::int64_t ended_ns_ = 0;
    std::int64_t deadline_ns_ = 0;
    std::int64_t grace_ns_ = 0;
    std::int64_t kill_ns_ = 0;  ///< next look for survivors of a kill
    int kill_rounds_ = 0;
    int status_ = 0;
    rusage usage_{};
    int lingering_ = 0;
    std::string report_;
    bool reaped_ = false;
    bool finished_ = false;
    bool timed_out_ = false;
};

}  // namespace hearth::agent
