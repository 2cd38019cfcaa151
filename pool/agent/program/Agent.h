#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "pool/agent/BindLock.h"
#include "pool/agent/Deadlines.h"
#include "pool/agent/program/BrokerPort.h"
#include "pool/agent/program/Connection.h"
#include "pool/agent/program/Executions.h"
#include "pool/agent/program/FileWorker.h"
#include "pool/agent/program/Loop.h"
#include "pool/agent/program/Settings.h"

namespace hearth::agent {

/// The whole agent: the listening socket, its connections, the bind lock, the deadlines and the
/// executions. One thread, but for file operations.
class Agent final : private ConnectionOwner, private FileWorker::Owner {
public:
    static constexpr std::size_t kMaxData = 8;
    static constexpr std::size_t kMaxWorkers = 12;

    /// `listener` is a listening socket, `signals` a signalfd of SIGCHLD, SIGTERM and SIGINT.
    Agent(const Settings& settings, Fd listener, Fd signals);
    ~Agent();

    /// Serves until the sandbox ends; the exit status.
    int run();

private:
    class Watch;
    struct Operation;

    void accept();
    void signalled();
    void reap();
    void tick(std::int64_t now_ns);
    std::int64_t timeoutNs(std::int64_t now_ns) const;
    /// Ends every process of the sandbox; the loop ends after its batch.
    void end();
    void killEverything();

    void request(Connection& connection, std::uint32_t stream, const Value& body) override;
    void closed(Connection& connection) override;
    void fileActivity() override { deadlines_.touch(nowNs()); }
    void ended(FileWorker& worker) override;

    void hello(Connection& connection, std::uint32_t stream, const Value& body);
    void bind(Connection& connection, std::uint32_t stream, const Value& body);
    void setDeadlines(Connection& connection, std::uint32_t stream, const Value& body);
    void touch(Connection& connection, std::uint32_t stream, const Value& body);
    void usage(Connection& connection, std::uint32_t stream, const Value& body);
    void drain(Connection& connection, std::uint32_t stream, const Value& body);
    void exec(Connection& connection, std::uint32_t stream, const Value& body);
    void attach(Connection& connection, std::uint32_t stream, const Value& body);
    void signal(Connection& connection, std::uint32_t stream, const Value& body);
    void resize(Connection& connection, std::uint32_t stream, const Value& body);
    void forget(Connection& connection, std::uint32_t stream, const Value& body);
    void prewarm(Connection& connection, std::uint32_t stream, const Value& body);
    void context(Connection& connection, std::uint32_t stream, const Value& body);
    void contextEnd(Connection& connection, std::uint32_t stream, const Value& body);
    void contextRestart(Connection& connection, std::uint32_t stream, const Value& body);
    void interrupt(Connection& connection, std::uint32_t stream, const Value& body);
    void broker(Connection& connection, std::uint32_t stream, const Value& body);
    void file(Connection& connection, std::uint32_t stream, std::string_view op, const Value& body);

    bool admit(Connection& connection, std::uint32_t stream, const Value& body);
    Value holder() const;
    Value deadlines() const;
    std::size_t count(Connection::Kind kind) const;

    const Settings& settings_;
    Loop loop_;
    BindLock lock_;
    Deadlines deadlines_;
    Executions executions_;
    BrokerPort broker_;
    Fd listener_;
    Fd signals_;
    std::unique_ptr<Watch> accepting_;
    std::unique_ptr<Watch> signalling_;
    std::list<std::unique_ptr<Connection>> connections_;
    std::list<std::unique_ptr<FileWorker>> workers_;
    std::int64_t alone_since_ns_;  ///< no control connection since; 0 while there is one
    bool reap_again_ = false;      ///< there were more dead than one turn reaps
    bool ending_ = false;
};

}  // namespace hearth::agent
