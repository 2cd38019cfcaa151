#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Clock.h"
#include "base/Error.h"
#include "base/Fd.h"
#include "base/Json.h"
#include "pool/agent/connection/AgentTypes.h"
#include "pool/agent/connection/FileTypes.h"
#include "pool/agent/connection/Poller.h"
#include "pool/agent/transport/AgentLink.h"

namespace hearth::agent {

/// The server's side of one sandbox's agent: the control connection, and data connections made on
/// demand (one is kept for reuse while the workspace is busy). Every method is thread-safe and
/// blocks for its answer up to its timeout. The calling thread reads the answer itself (leader and
/// followers); without a caller, the Poller's thread owns the connection.
///
/// Throws AgentError if the agent refused, AgentLost if it is gone, late or sends malformed frames.
/// A late answer fails only its own call: the connection continues, and the answer is dropped.
class AgentClient {
public:
    using Connect = AgentDialer;
    /// Hears why the control connection has ended.
    using OnLost = std::function<void(const AgentLost& loss)>;

    /// `connect` makes a new connection to the agent (SandboxRuntime::connect, TcpDialer).
    /// `on_lost` is called once, from any thread (also before the constructor has returned), when
    /// the control connection ends or the agent breaks the protocol; not if the constructor throws,
    /// and not for the destructor. Blocks for the hello. `timeout` is also that of calls that take
    /// none. `clock` is asked during the hello only: an agent on another machine has another clock.
    /// Null: it is known to be on this one.
    AgentClient(Poller& poller, Connect connect, std::uint64_t epoch,
                std::chrono::milliseconds timeout, OnLost on_lost, const Clock* clock = nullptr);
    /// As close().
    ~AgentClient();
    AgentClient(const AgentClient&) = delete;
    AgentClient& operator=(const AgentClient&) = delete;

    /// The agent's hello when the control connection began.
    const Hello& hello() const { return hello_; }
    bool lost() const;
    /// Ends the connections; sinks still open hear `lost`. When it returns nothing is called any
    /// more, unless it was called by a sink or `on_lost` itself.
    void close();

    BindReply bind(const BindRequest& request, std::chrono::milliseconds timeout);
    /// nullopt leaves a deadline as it is. In force in the agent when this returns.
    Deadlines setDeadlines(std::uint64_t epoch, std::optional<TimePoint> expires_at,
                           std::optional<std::chrono::milliseconds> idle_timeout);
    /// `patience` in place of the client's own.
    TimePoint touch(std::optional<std::chrono::milliseconds> patience = {});
    /// What its sandbox uses at the moment; before bind, too. `patience` in place of the client's
    /// own.
    AgentUsage usage(std::optional<std::chrono::milliseconds> patience = {});
    /// For calls from now on that take no timeout; before the client is shared.
    void patience(std::chrono::milliseconds timeout);
    /// Returns when the request has been sent; the sink hears the rest. The sink is not kept, since
    /// it may own this client: it hears nothing more once its owners have let it go. If this
    /// throws, the sink hears nothing. Output beyond `output_limit` is taken at 1 MiB/s only.
    std::shared_ptr<ExecHandle> exec(const ExecRequest& request,
                                     const std::shared_ptr<ExecSink>& sink);
    /// From `offset` of the output and `results` of the results on.
    std::shared_ptr<ExecHandle> attach(const std::string& id, std::uint64_t offset,
                                       const std::shared_ptr<ExecSink>& sink,
                                       std::uint64_t output_limit = 1U << 20U,
                                       std::uint64_t results = 0);
    /// Lets this thread read the connection until `done` is true or the deadline passes: the way to
    /// wait for a sink without a hand-off between threads. `done` is asked after whatever was read
    /// and must be cheap and thread-safe. Returns at the deadline too; throws AgentLost when the
    /// connection ended and `done` is still false.
    void drive(const std::function<bool()>& done, std::chrono::milliseconds timeout);
    /// Has the agent listen on the sandbox's loopback and hand over, or announce, what connects
    /// there, as many as were granted. Before anything that is asked afterwards; returns when it
    /// has been sent. The sink is not kept.
    std::shared_ptr<EgressHandle> broker(std::uint16_t port,
                                         const std::shared_ptr<EgressSink>& sink);
    void signal(const std::string& id, std::string_view name);
    void resize(const std::string& id, unsigned columns, unsigned rows);
    /// Waits a second at most.
    void forget(const std::string& id);
    void drain(std::uint64_t epoch);

    /// Makes a context; true if the agent had it already. An interpreter may take its time to
    /// start, so `timeout` is its own.
    bool createContext(const ContextRequest& request, std::chrono::milliseconds timeout);
    void endContext(const std::string& id);
    void restartContext(const std::string& id, std::chrono::milliseconds timeout);
    /// Sends SIGINT to the context's execution; AgentError NOT_FOUND if it runs nothing or does not
    /// exist.
    void interruptContext(const std::string& id);
    /// Hears once how a prewarm went: the reply, or a refusal, or neither if the agent was lost.
    /// Must not block.
    using Prewarmed = std::function<void(const std::optional<PrewarmReply>& reply,
                                         const std::optional<AgentError>& refusal)>;
    /// Returns when the request has been sent. If this throws, `done` is not called.
    void prewarm(const PrewarmRequest& request, Prewarmed done);

    /// Files, on a data connection. Paths are relative to the workspace. Without progress for
    /// kDataPatience they throw Error(Deadline) and give up that data connection only. Those that
    /// transfer no file take no longer than that in all, or than `timeout`: with the wait for a
    /// connection, and a second attempt.
    FileStat stat(const std::string& path, std::chrono::milliseconds timeout = kDataPatience);
    /// Calls `begin` with the file's stat, then `chunk` for each piece; stops early when `chunk`
    /// gives false. The agent is waited for until `timeout` at most, if that is given.
    void readFile(const std::string& path, std::uint64_t offset, std::uint64_t length,
                  const std::function<void(const FileStat&)>& begin,
                  const std::function<bool(std::string_view)>& chunk,
                  std::optional<std::chrono::milliseconds> timeout = {});
    /// `next` fills a buffer and gives the bytes, 0 at the end; the file appears whole or not at
    /// all. An exception from `next` leaves nothing.
    FileStat writeFile(const std::string& path, std::optional<unsigned> mode,
                       const std::function<std::size_t(char*, std::size_t)>& next);
    /// A tar of the directory, in pieces; stops early when `chunk` gives false.
    void readArchive(const std::string& path, const std::function<bool(std::string_view)>& chunk);
    /// Unpacks the tar that `next` gives, as writeFile. Nothing of a faulty one is seen.
    ArchiveCount writeArchive(const std::string& path,
                              const std::function<std::size_t(char*, std::size_t)>& next);
    FileList list(const std::string& path, bool recursive, std::size_t limit,
                  const std::string& after);
    void makeDirectory(const std::string& path);
    void move(const std::string& from, const std::string& to);
    void remove(const std::string& path, bool recursive);
    /// Regular files written since that one of the patterns has (none: all), at most `limit`. May
    /// name a file written up to kChangeSlack before.
    FileChanges changes(TimePoint since, std::size_t limit,
                        const std::vector<std::string>& globs = {},
                        std::chrono::milliseconds timeout = kDataPatience);
    static constexpr std::chrono::milliseconds kChangeSlack{10};

private:
    struct Impl;
    Hello hello_;
    std::unique_ptr<Impl> impl_;
};

}  // namespace hearth::agent
