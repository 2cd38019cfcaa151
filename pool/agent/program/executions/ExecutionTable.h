#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "pool/agent/program/core/Connection.h"
#include "pool/agent/program/core/EventLoop.h"
#include "pool/agent/program/core/Settings.h"
#include "pool/agent/program/executions/ContextTable.h"
#include "pool/agent/program/executions/Execution.h"
#include "pool/agent/program/interpreters/ParkedShells.h"
#include "pool/agent/program/interpreters/ZygoteSet.h"
#include "pool/agent/program/process/Environment.h"
#include "pool/agent/program/process/Languages.h"
#include "pool/agent/protocol/Deadlines.h"

namespace hearth::agent {

/// Every execution and every context that the agent keeps, and the operations on them. On the
/// loop's thread.
class ExecutionTable final : private ExecutionOwner {
public:
    static constexpr std::size_t kMaxKept = 64;
    static constexpr int kMaxRunning = 32;
    static constexpr std::size_t kMaxContexts = 8;

    ExecutionTable(EventLoop& loop, const Settings& settings, Deadlines& deadlines);
    ~ExecutionTable();

    Environment& environment() noexcept { return environment_; }
    const Languages& languages() const noexcept { return languages_; }
    ZygoteSet& zygotes() noexcept { return zygotes_; }

    void exec(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void attach(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void signal(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void resize(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void forget(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void context(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void contextEnd(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void contextRestart(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void interrupt(Connection& connection, std::uint32_t stream, const JsonValue& body);

    /// For hello.
    JsonValue list() const;
    JsonValue listContexts() const;
    int running() const noexcept { return deadlines_.running(); }

    /// A child of the agent has been reaped.
    void reaped(pid_t pid, int status, const rusage& usage);
    std::int64_t nextTickNs() const noexcept;
    void tick(std::int64_t now_ns);
    void killAll();

private:
    class Drain;

    void finished(Execution& execution) override;
    Refusal begin(Execution& execution) override;
    Refusal startCold(Execution& execution) override;
    void active() override { deadlines_.touch(nowNs()); }
    void drain(Fd pipe) override;

    Execution* find(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void follow(Connection& connection, std::uint32_t stream, Execution& execution,
                std::uint64_t from, std::uint64_t results_from, bool repeated);
    bool makeRoom();
    /// Reads the work to run; false if it has answered with a reason.
    bool readWork(Connection& connection, std::uint32_t stream, const JsonValue& body,
                  Execution::Request& request);
    /// Starts a command in a parked shell; false if there is none, or it cannot run the command.
    bool startInShell(Execution& execution);
    /// Starts in an interpreter forked in advance; false if there is none that fits.
    bool startFresh(Execution& execution);
    Refusal startContext(Context& context);
    Refusal runInContext(Execution& execution);
    /// Starts its preparation, if it has one, else its work.
    Refusal start(Execution& execution);
    Context* findContext(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void execInContext(Connection& connection, std::uint32_t stream, const JsonValue& body,
                       Execution::Request request);
    Execution& keep(std::unique_ptr<Execution> execution);
    gid_t nextLabel();
    /// The source of the report that a process has ended. A tenant may control a zygote.
    enum class Teller : std::uint8_t { Kernel, Zygote };
    void dead(pid_t pid, int status, const rusage& usage, Teller teller);
    void forked(gid_t label, pid_t pid);
    void zygoteGone();

    EventLoop& loop_;
    const Settings& settings_;
    Deadlines& deadlines_;
    Environment environment_;
    Languages languages_;
    ParkedShells shells_;
    ZygoteSet zygotes_;
    std::map<std::string, std::unique_ptr<Context>> contexts_;  ///< before the executions in them
    std::map<std::string, std::unique_ptr<Execution>> all_;
    std::deque<std::unique_ptr<Drain>> drains_;
    std::uint32_t labels_ = 0;
};

}  // namespace hearth::agent
