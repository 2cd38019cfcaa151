#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Clock.h"
#include "base/Error.h"
#include "base/Fd.h"
#include "base/Json.h"

namespace hearth::agent {

class Connection;
class Poller;

/// What an agent refused, with its code of PROTOCOL.md ("BOUND_ELSEWHERE", "NOT_FOUND", …).
class AgentError : public std::runtime_error {
public:
    AgentError(std::string code, const std::string& message, Json details)
        : std::runtime_error(message), code_(std::move(code)), details_(std::move(details)) {}
    const std::string& code() const noexcept { return code_; }
    const Json& details() const noexcept { return details_; }

private:
    std::string code_;
    Json details_;
};

/// The agent is not there any more, broke the protocol or did not answer in time. The sandbox
/// must not be trusted again.
class AgentLost : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Apart in the linker from what the program inside calls by the same names (BindLock.h,
/// Deadlines.h); no file may include both.
inline namespace client {

struct Deadlines {
    TimePoint expires_at{};                     ///< zero: never
    std::chrono::milliseconds idle_timeout{0};  ///< zero: never
    TimePoint idle_at{};  ///< when it will be idle if nothing happens; zero: running or never
};

/// What an agent says about its one bind.
struct Binding {
    std::string claim_id;
    std::uint32_t attempt = 0;
    std::uint64_t epoch = 0;
    std::string tenant;
    std::string workspace_id;
    std::string fingerprint;
    std::map<std::string, std::string> labels;
    Json note;
    TimePoint bound_at{};
};

}  // namespace client

struct KnownExecution {
    std::string id;
    std::string fingerprint;
    bool running = false;
    bool background = false;
    TimePoint started_at{};
};

struct KnownContext {
    std::string id;
    std::string language;
    bool running = false;
};

struct Hello {
    std::string version;
    std::uint64_t highest_epoch = 0;
    std::optional<Binding> binding;
    Deadlines deadlines;
    TimePoint last_activity{};
    TimePoint now{};  ///< of the agent's own clock; all else is told in ours
    std::uint32_t running = 0;
    std::vector<KnownExecution> executions;
    std::vector<KnownContext> contexts;
    std::vector<std::string> languages;
};

/// An archive of Debian packages that apt in the sandbox takes them from.
struct AptArchive {
    std::string source;             ///< "URL SUITE COMPONENT…"
    std::string keyring;            ///< in the image, for its signature; empty: apt checks none
    bool keyring_optional = false;  ///< where the image has it not, apt checks none

    bool operator==(const AptArchive&) const = default;
};

struct BindRequest {
    std::uint64_t epoch = 0;
    std::string claim_id;
    std::uint32_t attempt = 1;
    std::string tenant;
    std::string workspace_id;
    std::string fingerprint;
    std::map<std::string, std::string> labels;
    Json note = Json::object();
    std::map<std::string, std::string> env;
    std::map<std::string, std::string> secrets;
    std::uint32_t cpus = 0;  ///< for thread counts, where they are fewer than at the start; 0: not
    std::string trust;       ///< certificates in PEM that programs trust besides the image's own
    std::vector<AptArchive> apt;
    Deadlines deadlines;
};

struct BindReply {
    bool repeated = false;
    std::uint32_t attempt = 0;
    std::string workspace_id;
    TimePoint bound_at{};
};

/// A process that runs before the work of an execution and as a part of it.
struct PrepareWork {
    std::vector<std::string> argv;
    std::string input;       ///< on its standard input, one line
    bool with_code = false;  ///< and behind it the code
};

/// What came of it. Untrusted text.
struct Prepared {
    bool ok = false;  ///< else the work has not begun
    std::uint64_t duration_ms = 0;
    std::string output;  ///< the ends of what it printed
    std::string errors;
};

struct ExecRequest {
    std::string id;
    std::string fingerprint;
    /// Exactly one of: argv, command (by /bin/sh -c), language and code.
    std::vector<std::string> argv;
    std::string command;
    std::string language;
    std::string code;
    std::string context;  ///< with code: the interpreter to run it in; cwd and env are its own
    std::string cwd;
    std::map<std::string, std::string> env;
    bool stdin_open = false;
    std::optional<std::pair<unsigned, unsigned>> pty;  ///< columns, rows
    std::chrono::milliseconds timeout{0};
    std::uint64_t output_limit = 1U << 20U;
    bool background = false;
    bool prewarm = false;  ///< before the bind, and only then
    std::optional<PrepareWork> prepare;
    Json note = Json::object();  ///< told again by ExecStart where the agent had it already
};

/// What an agent says when an execution begins, or is found again.
struct ExecStart {
    TimePoint at{};
    bool repeated = false;
    std::string interpreter;     ///< zygote, context, cold; of a command parked or empty
    std::string context;         ///< empty: none
    Json note = Json::object();  ///< of ExecRequest, where repeated: the agent's word
};

struct ExecResult {
    std::string status;  ///< ok, failed, timeout, killed
    int exit_code = 0;
    int signal = 0;
    TimePoint started_at{};
    TimePoint ended_at{};
    std::uint64_t cpu_ms = 0;
    std::uint64_t max_rss_bytes = 0;
    std::uint64_t output_bytes = 0;
    std::uint64_t dropped_bytes = 0;
    std::string interpreter;  ///< as in ExecStart
    std::uint64_t result_bytes = 0;
    std::uint64_t dropped_results = 0;
    std::optional<bool> context_kept;  ///< of one that ran in a context
    std::optional<Prepared> prepared;  ///< of one that was to be
    std::string report;  ///< untrusted JSON text left by the language's runner, or empty
};

/// A stateful interpreter to be made.
struct ContextRequest {
    std::string id;
    std::string language;
    std::string cwd;
    std::map<std::string, std::string> env;
};

/// Interpreters to be kept ready, with what they import ahead.
struct PrewarmRequest {
    std::map<std::string, std::vector<std::string>> languages;  ///< to modules
    std::chrono::milliseconds wait{0};
};

struct PrewarmReply {
    std::vector<std::string> ready;
    std::map<std::string, std::string> failed;  ///< language to why; untrusted text
};

/// Receives one execution. Called from whichever thread reads the connection, one call at a time,
/// never while a lock of the client is held; must not block and must not ask the same client
/// (std::logic_error). `lost` and `exited` are the last call; exactly one of them
/// comes to a sink that lives.
class ExecSink {
public:
    virtual ~ExecSink() = default;
    virtual void started(const ExecStart& start) = 0;
    /// `offset` is the place of `bytes` in the one sequence over both channels. `channel`: 1, 2.
    virtual void output(int channel, std::uint64_t offset, std::string_view bytes) = 0;
    /// Something the code shows: untrusted text that should be a JSON object, at most kMaxResult
    /// (Frame.h) long. Comes behind the output that was there before it.
    virtual void result(std::string_view /*json*/) {}
    virtual void exited(const ExecResult& result) = 0;
    /// The stream ended without a result: refused (`error` set) or the agent was lost (empty).
    virtual void lost(const std::optional<AgentError>& error) = 0;
};

/// A way back into a running execution on the control connection. Thread-safe.
class ExecHandle {
public:
    virtual ~ExecHandle() = default;
    /// Blocks while the agent takes no more, up to `timeout`; throws AgentLost, Error(Deadline).
    /// Input to an execution that has ended goes nowhere.
    virtual void writeStdin(std::string_view bytes, std::chrono::milliseconds timeout) = 0;
    virtual void closeStdin() = 0;
};

/// Receives what a sandbox sends out. Called as an ExecSink is: one call at a time, from whichever
/// thread reads the connection; must not block and must not ask the same client.
class BrokerSink {
public:
    virtual ~BrokerSink() = default;
    /// A TCP connection that tenant code made to the agent's port, non-blocking.
    virtual void connected(Fd connection) = 0;
    /// The agent does not offer the port, or to somebody else now. The last call.
    virtual void refused(const std::string& why) = 0;
};

/// Lets more connections come. Thread-safe.
class BrokerHandle {
public:
    virtual ~BrokerHandle() = default;
    /// Of connections; goes nowhere when the agent is gone.
    virtual void grant(std::uint32_t connections) = 0;
};

struct FileStat {
    std::string path;
    std::string type;  ///< file, directory, symlink, other
    std::uint64_t size = 0;
    unsigned mode = 0;
    std::int64_t modified_unix_ms = 0;
    std::string target;  ///< of a symlink
    std::string etag;
};

struct FileList {
    std::vector<FileStat> items;
    std::string next;  ///< pass as `after`; empty at the end
};

struct FileChanges {
    std::vector<FileStat> items;
    bool more = false;  ///< there may be others: too many, or too large or deep a tree
};

/// What an unpacked archive held.
struct ArchiveCount {
    std::uint64_t files = 0;
    std::uint64_t directories = 0;
    std::uint64_t links = 0;
    std::uint64_t bytes = 0;
};

/// The server's side of one sandbox's agent: the control connection, and data connections made on
/// demand (one is kept for reuse while the workspace is busy). Every method is thread-safe and
/// blocks for its answer up to its timeout. The thread that asks reads the answer itself (leader
/// and followers); while nobody waits, the Poller's thread owns the connection.
///
/// Throws AgentError for what the agent refused, AgentLost when it is gone, late or malformed.
class AgentClient {
public:
    using Connect = std::function<Fd()>;
    /// Hears why the agent is lost.
    using OnLost = std::function<void(const std::string& reason)>;

    /// `connect` makes a new connection to the agent (ContainerRuntime::connect). `on_lost` is
    /// called once, from any thread (also before the constructor has returned), when the control
    /// connection ends or the agent breaks the protocol; not if the constructor throws, and not for
    /// the destructor. Blocks for the hello. `timeout` is also that of calls that take none.
    /// `clock` is asked during the hello only: an agent on another machine has another clock. Null:
    /// it is known to be on this one.
    AgentClient(Poller& poller, Connect connect, std::uint64_t epoch,
                std::chrono::milliseconds timeout, OnLost on_lost, const Clock* clock = nullptr);
    /// Ends the connections; sinks still open hear `lost`. When it returns nothing is called any
    /// more, unless it was called by a sink or `on_lost` itself.
    ~AgentClient();
    AgentClient(const AgentClient&) = delete;
    AgentClient& operator=(const AgentClient&) = delete;

    /// What the agent said when the control connection began.
    const Hello& hello() const { return hello_; }
    bool lost() const;

    BindReply bind(const BindRequest& request, std::chrono::milliseconds timeout);
    /// nullopt leaves a deadline as it is. In force in the agent when this returns.
    Deadlines setDeadlines(std::uint64_t epoch, std::optional<TimePoint> expires_at,
                           std::optional<std::chrono::milliseconds> idle_timeout);
    TimePoint touch();
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
    /// Has the agent listen on the sandbox's loopback and hand over what connects there, as many
    /// as were granted. Before anything that is asked afterwards; returns when it has been sent.
    /// The sink is not kept.
    std::shared_ptr<BrokerHandle> broker(std::uint16_t port,
                                         const std::shared_ptr<BrokerSink>& sink);
    void signal(const std::string& id, std::string_view name);
    void resize(const std::string& id, unsigned columns, unsigned rows);
    void forget(const std::string& id);
    void drain(std::uint64_t epoch);

    /// Makes a context; true if the agent had it already. An interpreter may take its time to
    /// start, so `timeout` is its own.
    bool createContext(const ContextRequest& request, std::chrono::milliseconds timeout);
    void endContext(const std::string& id);
    void restartContext(const std::string& id, std::chrono::milliseconds timeout);
    /// SIGINT to what the context runs; AgentError NOT_FOUND if it runs nothing or is none.
    void interruptContext(const std::string& id);
    /// Hears once how a prewarm went: the reply, or a refusal, or neither if the agent was lost.
    /// Must not block.
    using Prewarmed = std::function<void(const std::optional<PrewarmReply>& reply,
                                         const std::optional<AgentError>& refusal)>;
    /// Returns when the request has been sent. If this throws, `done` is not called.
    void prewarm(const PrewarmRequest& request, Prewarmed done);

    /// Files, on a data connection. Paths are relative to the workspace. Without progress for 10 s
    /// they throw Error(Deadline) and give up that data connection only.
    FileStat stat(const std::string& path);
    /// Calls `begin` with the file's stat, then `chunk` for each piece; stops early when `chunk`
    /// gives false.
    void readFile(const std::string& path, std::uint64_t offset, std::uint64_t length,
                  const std::function<void(const FileStat&)>& begin,
                  const std::function<bool(std::string_view)>& chunk);
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
                        const std::vector<std::string>& globs = {});
    static constexpr std::chrono::milliseconds kChangeSlack{10};
    /// Bytes of the workspace's file system: total, used.
    std::pair<std::uint64_t, std::uint64_t> diskUsage();

private:
    struct Impl;
    Hello hello_;
    std::unique_ptr<Impl> impl_;
};

/// The one thread that reads every agent connection on which nobody waits. Outlives all clients.
class Poller {
public:
    Poller();
    ~Poller();
    Poller(const Poller&) = delete;
    Poller& operator=(const Poller&) = delete;

private:
    friend class Connection;
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace hearth::agent
