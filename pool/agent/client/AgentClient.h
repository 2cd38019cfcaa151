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
    /// and not by the destructor. Blocks for the hello. `timeout` also applies to calls that take
    /// none. `clock` is used during the hello only, because an agent on another machine has another
    /// clock. Null: the agent is known to be on this machine.
    AgentClient(Poller& poller, Connect connect, std::uint64_t epoch,
                std::chrono::milliseconds timeout, OnLost on_lost, const Clock* clock = nullptr);
    /// Same as close().
    ~AgentClient();
    AgentClient(const AgentClient&) = delete;
    AgentClient& operator=(const AgentClient&) = delete;

    /// The agent's hello when the control connection began.
    const Hello& hello() const { return hello_; }
    bool lost() const;
    /// Ends the connections; open sinks hear `lost`. After it returns nothing is called any more,
    /// unless a sink or `on_lost` itself called it.
    void close();

    BindReply bind(const BindRequest& request, std::chrono::milliseconds timeout);
    /// nullopt leaves a deadline as it is. The change is in force in the agent when this returns.
    Deadlines setDeadlines(std::uint64_t epoch, std::optional<TimePoint> expires_at,
                           std::optional<std::chrono::milliseconds> idle_timeout);
    /// Waits up to `patience` instead of the client's own timeout.
    TimePoint touch(std::optional<std::chrono::milliseconds> patience = {});
    /// Returns what the sandbox uses at the moment; also works before bind. Waits up to `patience`
    /// instead of the client's own timeout.
    AgentUsage usage(std::optional<std::chrono::milliseconds> patience = {});
    /// Sets the timeout of later calls that take none; call it before the client is shared.
    void patience(std::chrono::milliseconds timeout);
    /// Returns when the request has been sent; the sink hears the rest. The client does not keep
    /// the sink, since the sink may own the client: a sink without owners hears nothing more. If
    /// this throws, the sink hears nothing. Output beyond `output_limit` is taken at 1 MiB/s only.
    std::shared_ptr<ExecHandle> exec(const ExecRequest& request,
                                     const std::shared_ptr<ExecSink>& sink);
    /// Follows an execution from byte `offset` of its output and byte `results` of its results on.
    std::shared_ptr<ExecHandle> attach(const std::string& id, std::uint64_t offset,
                                       const std::shared_ptr<ExecSink>& sink,
                                       std::uint64_t output_limit = 1U << 20U,
                                       std::uint64_t results = 0);
    /// Lets this thread read the connection until `done` is true or the deadline passes: this waits
    /// for a sink without a hand-off between threads. `done` is called after each read and must be
    /// cheap and thread-safe. Returns at the deadline too; throws AgentLost if the connection has
    /// ended and `done` is still false.
    void drive(const std::function<bool()>& done, std::chrono::milliseconds timeout);
    /// Makes the agent listen on the sandbox's loopback and hand over, or announce, the connections
    /// made there, as many as were granted. Takes effect before any later request; returns when it
    /// has been sent. The sink is not kept.
    std::shared_ptr<EgressHandle> broker(std::uint16_t port,
                                         const std::shared_ptr<EgressSink>& sink);
    void signal(const std::string& id, std::string_view name);
    void resize(const std::string& id, unsigned columns, unsigned rows);
    /// Makes the agent forget an execution. Waits a second at most.
    void forget(const std::string& id);
    void drain(std::uint64_t epoch);

    /// Makes a context; true if the agent had it already. It has a `timeout` of its own, since an
    /// interpreter may need time to start.
    bool createContext(const ContextRequest& request, std::chrono::milliseconds timeout);
    void endContext(const std::string& id);
    void restartContext(const std::string& id, std::chrono::milliseconds timeout);
    /// Sends SIGINT to the context's execution; AgentError NOT_FOUND if it runs nothing or does not
    /// exist.
    void interruptContext(const std::string& id);
    /// Called once with the outcome of a prewarm: the reply, or a refusal, or neither if the agent
    /// was lost. Must not block.
    using Prewarmed = std::function<void(const std::optional<PrewarmReply>& reply,
                                         const std::optional<AgentError>& refusal)>;
    /// Returns when the request has been sent. If this throws, `done` is not called.
    void prewarm(const PrewarmRequest& request, Prewarmed done);

    /// Operations on files, over a data connection. Paths are relative to the workspace. Without
    /// progress for kDataPatience they throw Error(Deadline) and give up only that data connection.
    /// One that transfers no file takes at most that long in all, or at most `timeout`, including
    /// the wait for a connection and a second attempt.
    FileStat stat(const std::string& path, std::chrono::milliseconds timeout = kDataPatience);
    /// Calls `begin` with the file's stat, then `chunk` for each piece; stops early when `chunk`
    /// returns false. Waits for the agent until `timeout` at most, if it is given.
    void readFile(const std::string& path, std::uint64_t offset, std::uint64_t length,
                  const std::function<void(const FileStat&)>& begin,
                  const std::function<bool(std::string_view)>& chunk,
                  std::optional<std::chrono::milliseconds> timeout = {});
    /// `next` fills a buffer and returns the number of bytes, 0 at the end; the file appears whole
    /// or not at all. If `next` throws, nothing is left.
    FileStat writeFile(const std::string& path, std::optional<unsigned> mode,
                       const std::function<std::size_t(char*, std::size_t)>& next);
    /// Reads a tar of the directory in pieces; stops early when `chunk` returns false.
    void readArchive(const std::string& path, const std::function<bool(std::string_view)>& chunk);
    /// Unpacks the tar that `next` gives, as in writeFile. A faulty tar leaves nothing visible.
    ArchiveCount writeArchive(const std::string& path,
                              const std::function<std::size_t(char*, std::size_t)>& next);
    FileList list(const std::string& path, bool recursive, std::size_t limit,
                  const std::string& after);
    void makeDirectory(const std::string& path);
    void move(const std::string& from, const std::string& to);
    void remove(const std::string& path, bool recursive);
    /// Returns at most `limit` regular files written since then that match a pattern (no pattern:
    /// all). May name a file written up to kChangeSlack earlier.
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
