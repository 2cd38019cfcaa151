#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pool/agent/program/core/Connection.h"
#include "pool/agent/program/core/EventLoop.h"
#include "pool/agent/program/core/Settings.h"
#include "pool/agent/program/executions/ExecutionOutcome.h"
#include "pool/agent/program/executions/OutputStream.h"
#include "pool/agent/program/executions/Preparation.h"
#include "pool/agent/program/executions/ResultLog.h"
#include "pool/agent/program/interpreters/DriverChannel.h"
#include "pool/agent/program/interpreters/ParkedShells.h"
#include "pool/agent/program/interpreters/Zygote.h"
#include "pool/agent/program/process/KillRounds.h"
#include "pool/agent/program/process/Processes.h"
#include "pool/agent/program/process/Scratch.h"
#include "pool/agent/program/process/Spawn.h"
#include "pool/agent/protocol/OutputLog.h"

namespace hearth::agent {

class Execution;

/// The process of a context while an execution runs in it.
class ExecutionHost {
public:
    /// The execution has ended, and the process is free for the next.
    virtual void released() = 0;
    /// Sends SIGINT to the running execution; false if nothing runs.
    virtual bool interrupt() = 0;

protected:
    ~ExecutionHost() = default;
};

/// The reason why nothing was started; without a text it was.
struct Refusal {
    const char* text = nullptr;
    const char* code = "SPAWN_FAILED";  ///< of the protocol
    explicit operator bool() const noexcept { return text != nullptr; }
};

/// For code that could not be written to its folder (Scratch).
Refusal unwritten(int error) noexcept;

/// The events of an execution for its table.
class ExecutionOwner {
public:
    virtual void finished(Execution& execution) = 0;
    /// The preparation has ended: begins the work.
    virtual Refusal begin(Execution& execution) = 0;
    /// The interpreter that was forked in advance has not taken up its work and is gone: starts it
    /// cold.
    virtual Refusal startCold(Execution& execution) = 0;
    /// The execution got input.
    virtual void active() = 0;
    /// Takes a pipe that left-over processes still hold: it is read and its data dropped until they
    /// end, so that they neither block nor die of it.
    virtual void drain(Fd pipe) = 0;

protected:
    ~ExecutionOwner() = default;
};

/// One command or piece of code: its processes, pipes, output and result. It reads its pipes even
/// without listeners, and ends when its first process does, not when the pipes close. Code runs in
/// a process of its own, in a zygote's child, or in a context's process; a command runs in a
/// process of its own or in a parked shell.
class Execution final : public StreamOwner, private DriverListener {
public:
    /// The kinds of process in which code runs.
    enum class Interpreter : std::uint8_t { None, Cold, Zygote, Context, Parked };

    struct Request {
        std::string id;
        std::string fingerprint;
        std::string language;  ///< of the code; empty for a command
        std::string context;   ///< the id of the context it runs in, or empty
        std::string code;
        bool command = false;  ///< asked for as a command line, not as an argument vector
        SpawnRequest spawn;
        PrepareRequest prepare;
        std::int64_t timeout_ms = 0;
        std::size_t output_limit = 0;
        bool background = false;
        bool paced = false;  ///< waits for its streams instead of dropping output
        std::string note;  ///< JSON text of the server, returned to everyone who attaches; or empty
    };

    Execution(EventLoop& loop, const Settings& settings, ExecutionOwner& owner, Request request);
    Execution(const Execution&) = delete;
    Execution& operator=(const Execution&) = delete;
    ~Execution();

    Request& request() noexcept { return request_; }
    /// Runs `request().prepare`, then makes its owner begin the work; if that fails, nothing else
    /// runs. Returns null, or the reason why nothing was started.
    const char* prepare(gid_t label);
    /// Starts `request().spawn` as its own process, with a channel if it `speaks` on one. Returns
    /// null, or the reason of the failure.
    const char* startCold(std::unique_ptr<Scratch> scratch, bool speaks);
    /// Starts in an interpreter that was forked in advance.
    void startParked(std::unique_ptr<Parked> parked, std::string_view work,
                     std::unique_ptr<Scratch> scratch);
    /// Starts in a shell that was started in advance. False if it cannot be sent the script:
    /// nothing has run or will, and the execution is as it was before.
    bool startInShell(std::unique_ptr<ParkedShell> shell, std::string_view script);
    /// Runs in the process of a context, which continues afterwards. `pipes` are copies for this
    /// execution; messages on the context's channel are passed on to driver().
    void startHosted(ExecutionHost& host, Spawned pipes, gid_t label, Mark mark);
    /// Takes the output that came before it in its context; call before it starts.
    void precede(const OutputLog& earlier);
    void driver(std::string_view kind, std::string_view payload);
    /// The context has died, and this execution with it.
    void hostDied(int status, const rusage& usage);

    const std::string& id() const noexcept { return request_.id; }
    const std::string& fingerprint() const noexcept { return request_.fingerprint; }
    bool background() const noexcept { return request_.background; }
    pid_t pid() const noexcept { return pid_; }
    /// Its process is a zygote's child, so the zygote reports its end.
    bool ofZygote() const noexcept { return interpreter_ == Interpreter::Zygote; }
    std::int64_t startedAtNs() const noexcept { return started_ns_; }
    bool finished() const noexcept override { return finished_; }
    bool watched() const noexcept { return !streams_.empty(); }
    std::size_t streams() const noexcept { return streams_.size(); }
    /// Set by `forget` while it runs: it is removed when it ends.
    bool forgotten = false;

    /// Its first process has ended; in a context, together with the context.
    void reaped(int status, const rusage& usage);
    /// The child with this label has a pid; if it is this one's, it got its work before the fork.
    void forked(gid_t label, pid_t pid);
    /// The zygote has died: nobody can report how its dead children ended.
    void zygoteGone();
    /// Signals the process group; SIGKILL reaches every descendant. False if there is no process.
    bool signal(int number);
    void resize(unsigned short cols, unsigned short rows);
    /// Kills every process it ever started.
    void killAll();

    /// Returns when tick() must be called next; INT64_MAX for never.
    std::int64_t nextTickNs() const noexcept;
    void tick(std::int64_t now_ns);

    JsonValue startedNote(bool repeated) const;
    JsonValue result() const override;

private:
    class Pipe;

    const OutputLog& log() const noexcept override { return log_; }
    const ResultLog& results() const noexcept override { return results_; }
    bool holds() const noexcept override { return held_until_ns_ != INT64_MAX; }
    void opened(OutputStream& stream) override { streams_.push_back(&stream); }
    void closed(OutputStream& stream) override;
    void sent() override {
        if (paused_) pace();
    }
    void active() override { owner_.active(); }
    void feed() override;
    void driverSaid(DriverChannel& channel, std::string_view kind,
                    std::string_view payload) override;
    void driverClosed(DriverChannel& channel) override;
    void began(Spawned spawned);
    bool preparing() const noexcept { return preparation_ && preparation_->running(); }
    /// Its preparation has ended: returns true if the work has begun.
    bool prepared(int status, const rusage& usage);
    void startFailed(const char* why);
    void done(std::string_view payload);
    /// Gives up a process that should have begun: true if it has not begun and will not.
    bool takeBack();
    void retryCold();
    void readable(Pipe& pipe);
    /// True if it is paced and its pipes must wait: its streams have too much unsent output.
    bool ahead() const;
    /// Takes its pipes out of the loop, or puts them back, according to ahead().
    void pace();
    /// Holds first output a little, because the end mostly follows soon: then one frame carries
    /// both.
    void hold();
    void letGo();
    void wroteOff(std::unique_ptr<Pipe>& pipe);
    /// Reads the available bytes; true at end of file.
    bool drainPipe(Pipe& pipe, int rounds);
    /// Reads the output that precedes a driver's result.
    void drainBeforeResult();
    void closeInput();
    void pumpStreams();
    void finishIfDone();
    void finish();

    EventLoop& loop_;
    const Settings& settings_;
    ExecutionOwner& owner_;
    Request request_;
    std::unique_ptr<Scratch> scratch_;
    std::unique_ptr<Preparation> preparation_;
    OutputLog log_;
    std::uint64_t lost_bytes_ = 0;  ///< before it in its context, not kept
    ResultLog results_;
    Interpreter interpreter_ = Interpreter::None;
    std::unique_ptr<DriverChannel> channel_;
    HandedScript script_;  ///< of a parked shell, until it has surely been read
    ExecutionHost* host_ = nullptr;
    Mark mark_;
    gid_t label_ = 0;
    pid_t pid_ = -1;
    std::unique_ptr<Pipe> input_;
    std::unique_ptr<Pipe> output_;
    std::unique_ptr<Pipe> errors_;
    std::vector<OutputStream*> streams_;
    std::string left_input_;  ///< input of streams that went away
    std::int64_t started_ns_ = 0;
    std::int64_t ended_ns_ = 0;
    std::int64_t deadline_ns_ = 0;
    std::int64_t grace_ns_ = 0;
    std::int64_t begin_by_ns_ = 0;  ///< a child that has not begun by then is given up; else 0
    KillRounds kills_;
    std::int64_t held_until_ns_ = INT64_MAX;  ///< output waits for the end until then
    bool held_ = false;
    bool paused_ = false;  ///< pace() has taken its pipes out of the loop
    bool alone_ = false;   ///< its process says that no other can have its output open
    ExecutionOutcome outcome_;
    bool reaped_ = false;
    bool finished_ = false;
    bool killed_ = false;  ///< its processes must end: nothing is started for it any more
    bool host_lost_ = false;
};

}  // namespace hearth::agent
