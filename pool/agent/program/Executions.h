#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "pool/agent/Deadlines.h"
#include "pool/agent/program/Connection.h"
#include "pool/agent/program/Execution.h"
#include "pool/agent/program/Languages.h"
#include "pool/agent/program/Loop.h"
#include "pool/agent/program/Settings.h"

namespace hearth::agent {

/// Every execution the agent keeps, and the operations on them. On the loop's thread.
class Executions final : private ExecutionOwner {
public:
    static constexpr std::size_t kMaxKept = 64;
    static constexpr int kMaxRunning = 32;

    Executions(Loop& loop, const Settings& settings, Deadlines& deadlines);
    ~Executions();

    /// `NAME=value` pairs of the bind, put into every execution.
    void setEnvironment(std::map<std::string, std::string> env) { bound_env_ = std::move(env); }
    const Languages& languages() const noexcept { return languages_; }

    void exec(Connection& connection, std::uint32_t stream, const Value& body);
    void attach(Connection& connection, std::uint32_t stream, const Value& body);
    void signal(Connection& connection, std::uint32_t stream, const Value& body);
    void resize(Connection& connection, std::uint32_t stream, const Value& body);
    void forget(Connection& connection, std::uint32_t stream, const Value& body);

    /// For hello.
    Value list() const;
    int running() const noexcept { return deadlines_.running(); }

    /// A child of ours has been reaped.
    void reaped(pid_t pid, int status, const rusage& usage);
    std::int64_t nextTickNs() const noexcept;
    void tick(std::int64_t now_ns);
    void killAll();

    /// Reads `{"NAME": "value"}` into `out`; false if a name or value cannot be in an environment.
    static bool readEnvironment(const Value& body, std::map<std::string, std::string>& out);

private:
    class Drain;

    void finished(Execution& execution) override;
    void active() override { deadlines_.touch(nowNs()); }
    void drain(Fd pipe) override;

    Execution* find(Connection& connection, std::uint32_t stream, const Value& body);
    void follow(Connection& connection, std::uint32_t stream, Execution& execution,
                std::uint64_t from, bool repeated);
    bool makeRoom();
    std::vector<std::string> environment(const Value& extra, const std::string& scratch, bool pty,
                                         bool& valid) const;
    gid_t nextLabel();

    Loop& loop_;
    const Settings& settings_;
    Deadlines& deadlines_;
    const Value image_;  ///< {env: ["NAME=value"], workdir, languages}; null where nobody told
    Languages languages_;
    std::map<std::string, std::string> bound_env_;
    std::map<std::string, std::unique_ptr<Execution>> all_;
    std::deque<std::unique_ptr<Drain>> drains_;
    std::uint32_t labels_ = 0;
};

}  // namespace hearth::agent
