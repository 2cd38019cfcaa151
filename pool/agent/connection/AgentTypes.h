#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/Clock.h"
#include "base/Fd.h"
#include "base/Json.h"
#include "pool/agent/connection/ExecutionStatus.h"

namespace hearth::agent {

/// An agent's refusal, with its code of PROTOCOL.md ("BOUND_ELSEWHERE", "NOT_FOUND", …).
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

/// How an agent failed to answer.
enum class Loss {
    Gone,    ///< its connection has ended, or none could be made
    Late,    ///< it left this call unanswered, but sent other frames meanwhile
    Silent,  ///< it sent nothing at all meanwhile
    Broken,  ///< it broke the protocol: the sandbox must not be trusted again
};

/// The agent has not answered. Only Broken condemns its sandbox; after the other losses the runtime
/// knows whether the sandbox lives.
class AgentLost : public std::runtime_error {
public:
    explicit AgentLost(const std::string& reason, Loss loss = Loss::Gone)
        : std::runtime_error(reason), loss_(loss) {}
    Loss loss() const noexcept { return loss_; }

private:
    Loss loss_;
};

/// Keeps these names apart in the linker from the same names in the program inside (BindLock.h,
/// Deadlines.h); no file may include both.
inline namespace client {

struct Deadlines {
    TimePoint expires_at{};                     ///< zero: never
    std::chrono::milliseconds idle_timeout{0};  ///< zero: never
    /// False: the agent leaves the consequence of idleness to the server. No answer has it.
    bool idle_ends = true;
    TimePoint idle_at{};  ///< when it will be idle if nothing happens; zero: running or never
};

/// The facts of an agent's one bind.
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
    TimePoint now{};  ///< on the agent's own clock; all other times are on the server's
    std::uint32_t running = 0;
    std::vector<KnownExecution> executions;
    std::vector<KnownContext> contexts;
    std::vector<std::string> languages;
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
    std::uint32_t cpus = 0;  ///< for thread counts, if fewer than at the start; 0: no change
    std::string trust;  ///< certificates in PEM that programs trust, in addition to the image's own
    Deadlines deadlines;
};

/// An agent's report about its sandbox. Unverified: a tenant that has taken over the agent could
/// report anything.
struct AgentUsage {
    std::uint64_t disk_total = 0;
    std::uint64_t disk_used = 0;
    std::uint64_t processes = 0;
    /// The kernel's counts of the sandbox's control group.
    struct Group {
        std::uint64_t cpu_ns = 0;
        std::uint64_t memory_bytes = 0;
        std::uint64_t memory_peak_bytes = 0;  ///< 0: the kernel does not count it
        std::uint64_t oom_kills = 0;
    };
    /// nullopt if the agent must not or cannot report it.
    std::optional<Group> group;
};

struct BindReply {
    bool repeated = false;
    std::uint32_t attempt = 0;
    std::string workspace_id;
    TimePoint bound_at{};
};

/// A process that runs before the work of an execution, as a part of it.
struct PrepareWork {
    std::vector<std::string> argv;
    std::string input;       ///< on its standard input, one line
    bool with_code = false;  ///< followed by the execution's code
};

/// The outcome of a PrepareWork. Untrusted text.
struct Prepared {
    bool ok = false;  ///< false: the work has not begun
    std::uint64_t duration_ms = 0;
    std::string output;  ///< the last part of each stream
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
    std::string context;  ///< with code: the interpreter that runs it; cwd and env are its own
    std::string cwd;
    std::map<std::string, std::string> env;
    bool stdin_open = false;
    std::optional<std::pair<unsigned, unsigned>> pty;  ///< columns, rows
    std::chrono::milliseconds timeout{0};
    std::uint64_t output_limit = 1U << 20U;
    bool background = false;
    bool paced = false;    ///< the program waits for ExecSink::unread() instead of losing output
    bool prewarm = false;  ///< before the bind, and only then
    std::optional<PrepareWork> prepare;
    Json note = Json::object();  ///< reported again by ExecStart if the agent had it already
};

/// The facts of an execution that begins, or is found again.
struct ExecStart {
    TimePoint at{};
    bool repeated = false;
    std::string interpreter;     ///< zygote, context, cold; for a command parked or empty
    std::string context;         ///< empty: none
    Json note = Json::object();  ///< of ExecRequest, if repeated; unverified
};

struct ExecResult {
    ExecutionStatus status = ExecutionStatus::Ok;  ///< Ok to Killed
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
    std::optional<bool> context_kept;  ///< set if it ran in a context
    std::optional<Prepared> prepared;  ///< set if it was to be prepared
    std::string report;  ///< untrusted JSON text left by the language's runner, or empty
};

/// A stateful interpreter to make.
struct ContextRequest {
    std::string id;
    std::string language;
    std::string cwd;
    std::map<std::string, std::string> env;
};

/// Interpreters to keep ready, with the modules that they import in advance.
struct PrewarmRequest {
    std::map<std::string, std::vector<std::string>> languages;  ///< language to modules
    std::chrono::milliseconds wait{0};
};

struct PrewarmReply {
    std::vector<std::string> ready;
    std::map<std::string, std::string> failed;  ///< language to reason; untrusted text
};

/// The end of a gap in the output; a place as in ExecSink::output().
struct OutputGap {
    std::uint64_t end = 0;
    std::uint64_t stderr_before = 0;  ///< bytes of stderr before the end
};

/// Receives one execution. Called from whichever thread reads the connection, one call at a time,
/// never while a lock of the client is held; must not block and must not ask the same client
/// (std::logic_error). `lost` and `exited` are the last call; a sink that still exists gets exactly
/// one of them.
class ExecSink {
public:
    virtual ~ExecSink() = default;
    virtual void started(const ExecStart& start) = 0;
    /// `offset` is the place of `bytes` in the one sequence over both channels. `channel`: 1, 2.
    virtual void output(int channel, std::uint64_t offset, std::string_view bytes) = 0;
    /// Output that the agent did not keep. Comes before the output that follows it.
    virtual void gap(const OutputGap& /*gap*/) {}
    /// The bytes that its reader has not read, if the agent waits for that reader; else nullopt.
    virtual std::optional<std::uint64_t> unread() const { return std::nullopt; }
    /// One result that the code shows: untrusted text that should be a JSON object, at most
    /// kMaxResult (Frame.h) long. Comes after the output that was written before it.
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
    /// Input to an execution that has ended is dropped.
    virtual void writeStdin(std::string_view bytes, std::chrono::milliseconds timeout) = 0;
    virtual void closeStdin() = 0;
    /// Gives all of its input at once, instead of the other two. Never blocks: bytes that the agent
    /// does not take yet are kept and sent later; then the input is closed. Released when the
    /// execution or its connection ends.
    virtual void giveStdin(std::string bytes) = 0;
};

/// Receives a sandbox's outgoing connections. Called like an ExecSink: one call at a time, from
/// whichever thread reads the connection; must not block and must not ask the same client.
class EgressSink {
public:
    virtual ~EgressSink() = default;
    /// A TCP connection that tenant code made to the agent's port, non-blocking.
    virtual void connected(Fd connection) = 0;
    /// The same if a descriptor cannot be passed: `connection` is for EgressHandle::take(). The
    /// agent keeps it for a minute.
    virtual void announced(std::int64_t connection) = 0;
    /// The agent does not offer the port, or offers it to another client now. The last call.
    virtual void refused(const std::string& why) = 0;
};

/// A tenant's connection whose bytes the agent carries.
struct TakenConnection {
    Fd socket;  ///< non-blocking; closing it ends the tenant's connection
    /// Called before closing it, makes the tenant see that it broke instead of ended.
    std::function<void()> reset;
};

/// Lets more connections come. Thread-safe.
class EgressHandle {
public:
    virtual ~EgressHandle() = default;
    /// Grants this many more connections. Never blocks; has no effect when the agent is gone.
    virtual void grant(std::uint32_t connections) = 0;
    /// Takes an announced connection; blocks for a moment, for ten seconds at most. `until_over` is
    /// destroyed when the tenant's end of it is gone too, or if this throws: AgentLost,
    /// Error(Deadline), AgentError. If nobody waits for it any more it is closed at once.
    virtual TakenConnection take(std::int64_t connection, std::shared_ptr<void> until_over) = 0;
};

}  // namespace hearth::agent
