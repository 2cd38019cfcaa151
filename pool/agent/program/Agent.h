#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "pool/agent/program/core/Connection.h"
#include "pool/agent/program/core/EventLoop.h"
#include "pool/agent/program/core/OomWatch.h"
#include "pool/agent/program/core/Settings.h"
#include "pool/agent/program/egress/EgressPort.h"
#include "pool/agent/program/executions/ExecutionTable.h"
#include "pool/agent/program/files/FileWorker.h"
#include "pool/agent/protocol/BindLock.h"
#include "pool/agent/protocol/Deadlines.h"
#include "pool/agent/secure/Keys.h"

namespace hearth::agent {

/// The whole agent: the listening socket, its connections, the bind lock, the deadlines and the
/// executions. One thread, except file operations.
class Agent final : private ConnectionOwner, private FileWorker::Owner {
public:
    static constexpr std::size_t kMaxData = 8;
    static constexpr std::size_t kMaxWorkers = 12;

    /// `listener` is a listening socket, `signals` a signalfd of SIGCHLD, SIGTERM and SIGINT.
    /// `identity` is given if the settings name a server: then the socket is a TCP one.
    Agent(const Settings& settings, std::optional<secure::AgentIdentity> identity, Fd listener,
          Fd signals);
    ~Agent();

    /// Serves until the sandbox ends; returns the exit status.
    int run();

private:
    class Watch;
    struct Operation;

    void accept();
    void take(Fd socket, const sockaddr_storage& peer);
    void makePlace();
    void signalled();
    void reap();
    void tick(std::int64_t now_ns);
    std::int64_t timeoutNs(std::int64_t now_ns) const;
    std::int64_t silentUntilNs(const Connection& c) const;
    /// Ends every process of the sandbox; the loop ends after its batch.
    void end();
    void killEverything();

    void request(Connection& connection, std::uint32_t stream, const JsonValue& body) override;
    void closed(Connection& connection) override;
    void fileActivity() override { deadlines_.touch(nowNs()); }
    void ended(FileWorker& worker) override;

    void hello(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void bind(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void setDeadlines(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void touch(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void usage(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void drain(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void exec(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void attach(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void signal(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void resize(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void forget(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void prewarm(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void context(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void contextEnd(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void contextRestart(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void interrupt(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void broker(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void carry(Connection& connection, std::uint32_t stream, const JsonValue& body);
    void file(Connection& connection, std::uint32_t stream, std::string_view op,
              const JsonValue& body);

    bool admit(Connection& connection, std::uint32_t stream, const JsonValue& body);
    JsonValue holder() const;
    JsonValue deadlines() const;
    std::size_t count(Connection::Kind kind) const;

    const Settings& settings_;
    const std::optional<secure::AgentIdentity> identity_;
    EventLoop loop_;
    BindLock lock_;
    Deadlines deadlines_;
    ExecutionTable executions_;
    EgressPort egress_port_;
    OomWatch oom_watch_;
    Fd listener_;
    Fd signals_;
    std::unique_ptr<Watch> accepting_;
    std::unique_ptr<Watch> signalling_;
    std::list<std::unique_ptr<Connection>> connections_;
    std::list<std::unique_ptr<FileWorker>> workers_;
    std::int64_t alone_since_ns_;  ///< since then no control connection; 0 while there is one
    bool reap_again_ = false;      ///< more processes had died than one turn reaps
    bool ending_ = false;
};

}  // namespace hearth::agent
