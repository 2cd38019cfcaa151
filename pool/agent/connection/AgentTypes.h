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
    Late,    ///< to this call alone: it said other things meanwhile
    Silent,  ///< it said nothing at all meanwhile
    Broken,  ///< it broke the protocol: the sandbox must not be trusted again
};

/// The agent has not answered. Only Broken condemns its sandbox; of the others the runtime knows
/// whether it lives.
class AgentLost : public std::runtime_error {
public:
    explicit AgentLost(const std::string& reason, Loss loss = Loss::Gone)
        : std::runtime_error(reason), loss_(loss) {}
    Loss loss() const noexcept { return loss_; }

private:
    Loss loss_;
};

/// Apart in the linker from what the program inside calls by the same names (BindLock.h,
/// Deadlines.h); no file may include both.
inline namespace client {

struct Deadlines {
    TimePoint expires_at{};                     ///< zero: never
    std::chrono::milliseconds idle_timeout{0};  ///< zero: never
    /// False: the agent leaves what idleness means to the server. Of an answer, nullopt is an agent
    /// of an earlier version, which cannot.
    std::optional<bool> idle_ends;
    TimePoint idle_at{};  ///< when it will be idle if nothing happens; zero: running or never
};

/// An agent's facts of its one bind.
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
    TimePoint now{};  ///< of the agent's own clock; all other times are in ours
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
    std::string trust;  ///< certificates in PEM that programs trust, in addition to the image's own
    std::vector<AptArchive> apt;
    Deadlines deadlines;
};

/// What an agent tells of its sandbox. Its word: a tenant that has taken it over could tell
/// anything.
struct AgentUsage {
    std::uint64_t disk_total = 0;
    std::uint64_t disk_used = 0;
    std::uint64_t processes = 0;
    /// What the kernel counts of its control group.
    struct Group {
        std::uint64_t cpu_ns = 0;
        std::uint64_t memory_bytes = 0;
        std::uint64_t memory_peak_bytes = 0;  ///< 0: the kernel does not count it
        std::uint64_t oom_kills = 0;
    };
    /// None where the agent is not to tell, cannot, or is of a version before 2026-11-28.
    std::optional<Group> group;
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
    bool with_code = false;  ///< followed by the code
};

/// Its outcome. Untrusted text.
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
    bool paced = false;    ///< the program waits for ExecSink::unread() in place of losing output
    bool prewarm = false;  ///< before the bind, and only then
    std::optional<PrepareWork> prepare;
    Json note = Json::object();  ///< told again by ExecStart where the agent had it already
};

/// An agent's facts of an execution that begins, or is found again.
struct ExecStart {
    TimePoint at{};
    bool repeated = false;
    std::string interpreter;     ///< zygote, context, cold; of a command parked or empty
    std::string context;         ///< empty: none
    Json note = Json::object();  ///< of ExecRequest, where repeated: the agent's word
};

struct ExecResult {
    ExecutionStatus status = ExecutionStatus::Ok;  ///< up to Killed
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
    /// Bytes of it that a reader whom the agent waits for has not read; nullopt: there is none.
    virtual std::optional<std::uint64_t> unread() const { return std::nullopt; }
    /// Something the code shows: untrusted text that should be a JSON object, at most kMaxResult
    /// (Frame.h) long. Comes after the output that was written before it.
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
    /// All of its input at once, in place of the other two. Never blocks: bytes that the agent does
    /// not take yet are kept and sent as it does, then the close. Released when the execution or
    /// its connection ends.
    virtual void giveStdin(std::string bytes) = 0;
};

/// Receives what a sandbox sends out. Called as an ExecSink is: one call at a time, from whichever
/// thread reads the connection; must not block and must not ask the same client.
class EgressSink {
public:
    virtual ~EgressSink() = default;
    /// A TCP connection that tenant code made to the agent's port, non-blocking.
    virtual void connected(Fd connection) = 0;
    /// The same, where a descriptor cannot be passed: one to EgressHandle::take(). The agent keeps
    /// it for a minute.
    virtual void announced(std::int64_t connection) = 0;
    /// The agent does not offer the port, or to somebody else now. The last call.
    virtual void refused(const std::string& why) = 0;
};

/// A tenant's connection whose bytes the agent carries.
struct TakenConnection {
    Fd socket;  ///< non-blocking; closing it ends the tenant's connection
    /// Before that: the tenant is to see that it broke, not that it ended.
    std::function<void()> reset;
};

/// Lets more connections come. Thread-safe.
class EgressHandle {
public:
    virtual ~EgressHandle() = default;
    /// Grants so many more connections. Never blocks; goes nowhere when the agent is gone.
    virtual void grant(std::uint32_t connections) = 0;
    /// A connection that was announced; blocks for a moment, for ten seconds at most. `until_over`
    /// is destroyed when the tenant's end of it is gone too, or if this throws: AgentLost,
    /// Error(Deadline), AgentError. One that nobody waits for any more is closed at once.
    virtual TakenConnection take(std::int64_t connection, std::shared_ptr<void> until_over) = 0;
};

}  // namespace hearth::agent
