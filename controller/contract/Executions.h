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

#include "base/Error.h"
#include "base/Json.h"
#include "controller/contract/Principal.h"
#include "controller/contract/RichResults.h"
#include "controller/contract/Workspaces.h"
#include "controller/packages/PackageSpec.h"
#include "pool/agent/connection/ExecutionStatus.h"

namespace hearth::controller {

using agent::ExecutionStatus;
using agent::kExecutionStatuses;

/// A parsed `POST …/executions` or `run`. Exactly one of argv, command, code.
struct ExecutionRequest {
    std::vector<std::string> argv;
    std::optional<std::string> command;
    std::optional<std::string> code;
    std::string language;  ///< with code; empty: "python" if the image has it, else its first
    /// With code, in a workspace: the context to run it in; it has its own cwd, env and input.
    std::string context;
    std::string cwd;
    std::map<std::string, std::string> env;
    std::optional<std::string> stdin_bytes;                        ///< given at once, then closed
    bool stdin_open = false;                                       ///< more comes from writeStdin()
    std::chrono::milliseconds timeout = std::chrono::seconds(60);  ///< up to 24 h
    std::uint64_t output_limit = 1U << 20U;                        ///< 1 KiB to 16 MiB
    bool background = false;
    /// The program waits for the reader of its stream instead of losing output.
    bool paced = false;
    std::optional<std::pair<unsigned, unsigned>> pty;  ///< columns, rows
    /// Packages needed in the workspace before it runs (wrongSpec()): missing ones are installed.
    std::vector<std::string> packages;
    bool auto_packages = false;  ///< also packages that Python code imports and does not find
    /// Patterns of files: a file that matches and that the run made or changed is an artifact.
    std::vector<std::string> collect;
    std::string idempotency_key;
    std::string fingerprint;
    TimePoint started_at{};
};

/// Why no copy of an artifact is kept. Lost: its sandbox was lost; Gone: a copy was removed.
enum class NotKept : std::uint8_t { Quota, DiskFull, Time, Changed, Error, Lost, Gone };
inline constexpr Texts<NotKept, 7> kNotKept{
    {"quota", "disk full", "time", "changed", "error", "lost", "gone"}};

/// A file that a run made or changed.
struct Artifact {
    std::string path;
    std::uint64_t size = 0;
    std::string mime;
    std::string sha256;               ///< empty if the file was not read
    std::string url;                  ///< a signed path on this server; empty if no copy is kept
    std::int64_t expires_ms = 0;      ///< when the url expires
    std::optional<NotKept> not_kept;  ///< none: a copy is kept
};

/// The files that a run left.
struct CollectedArtifacts {
    std::vector<Artifact> items;
    bool truncated = false;  ///< there may be more
};

/// The outcome of an execution's requested packages. Texts are untrusted.
struct RunPackages {
    std::map<std::string, std::string> installed;      ///< names, with the version there is now
    std::map<std::string, std::string> not_installed;  ///< imports, each with the reason why not
    bool done = false;                                 ///< the execution has begun
    std::uint64_t duration_ms = 0;
    std::string error;  ///< why not done
    std::string said;   ///< the end of the package manager's output in that case
};

struct ExecutionView {
    std::string id;
    std::string workspace_id;
    std::string tenant;
    std::string pool;
    std::string language;  ///< "" for a command
    ExecutionStatus status = ExecutionStatus::Running;
    std::optional<int> exit_code;
    std::optional<std::string> signal;  ///< "KILL"
    std::string stdout_bytes;           ///< as kept: the head and the tail; may hold any bytes
    std::string stderr_bytes;
    std::uint64_t kept_bytes = 0;  ///< bytes of output kept, over both channels
    std::uint64_t output_end = 0;  ///< the offset after the last byte of output
    std::uint64_t gap_stderr = 0;  ///< bytes of stderr in the gap between head and tail
    std::size_t result_count = 0;
    std::uint64_t result_bytes = 0;  ///< size of their documents
    bool withheld = false;           ///< output and results are not in this view: too long
    bool truncated = false;
    std::uint64_t dropped_bytes = 0;
    std::vector<Artifact> artifacts;
    bool artifacts_truncated = false;     ///< it may have made or changed more files
    std::vector<ResultPtr> results;       ///< in the order they came
    std::uint64_t dropped_results = 0;    ///< too many, too large, or not showable
    std::optional<std::string> context;   ///< the context that it ran in
    std::optional<bool> context_kept;     ///< true if that context outlived it; none while running
    std::optional<RunPackages> packages;  ///< if it asked for any; none while running
    std::optional<Json> error;            ///< {"name", "message", "traceback"}: untrusted text
    std::string started_at;
    std::optional<double> duration_ms;  ///< none while running
    /// Milliseconds after the request; none if it did not happen or is not known.
    std::optional<double> start_ms{};
    std::optional<double> first_output_ms{};
    std::optional<double> elapsed_ms{};  ///< milliseconds since the request, while it runs
    std::string trace_id{};              ///< empty: none
    std::uint64_t cpu_ms = 0;
    std::uint64_t peak_memory_bytes = 0;
    /// How the code was run: zygote, context, cold; "" for a command, and until it has begun.
    std::string interpreter;
    bool background = false;
    std::optional<ClaimLedger> claim;  ///< one shot only
    bool replayed = false;
};

/// A piece of output in order; `offset` counts bytes over both channels.
struct OutputChunk {
    std::uint64_t offset = 0;
    int channel = 1;  ///< 1 stdout, 2 stderr
    std::string bytes{};
    std::uint64_t gap_stderr = 0;  ///< bytes of stderr among those dropped directly before it
};

/// One execution, running or ended; shared by everyone who looks at it. Thread-safe.
class Execution {
public:
    virtual ~Execution() = default;
    virtual const std::string& id() const = 0;
    /// Returns its present state. If output and results have more than `most` bytes together, they
    /// are left out (`withheld`) and can be read in pieces, by read() and resultAt().
    virtual ExecutionView viewUpTo(std::uint64_t most) const = 0;
    /// Returns its state with all of its output: some ten MiB at worst.
    ExecutionView view() const { return viewUpTo(UINT64_MAX); }
    virtual bool finished() const = 0;
    /// True while its time limit has passed and its sandbox does not answer: a call that waits for
    /// its end stops waiting. subscribe() reports this, too.
    virtual bool unanswered() const { return false; }
    /// The error of such a call.
    Error unansweredError() const {
        return Error(ErrorCode::Deadline, "execution " + id() +
                                              " should have ended by its time limit, but its "
                                              "sandbox does not answer; it is asked again")
            .hint("its files and output are kept: look at the execution later");
    }
    /// Throws that error if it is unanswered.
    void requireAnswer() const {
        if (!finished() && unanswered()) throw unansweredError();
    }
    /// Blocks until it has finished or `timeout` has passed; true if finished. Throws the client's
    /// Error if the sandbox refused to run it at all (too many at once, no such directory).
    virtual bool wait(std::chrono::milliseconds timeout) = 0;
    /// The next piece at or after `offset` (a larger offset in the answer: the bytes between were
    /// dropped), at most `most` bytes; nullopt if there is none yet, or no more when finished.
    virtual std::optional<OutputChunk> read(std::uint64_t offset, std::size_t most) const = 0;
    /// The result with this number; null past the last one so far. Each result has a place in the
    /// output: the output after it can be read only once the result can.
    virtual ResultPtr resultAt(std::size_t index) const = 0;
    /// True if read() and resultAt() read the disk. Stays true, and then no more output comes.
    virtual bool readsDisk() const { return false; }
    /// `changed` is called after each new output or result and at the end, from any thread. It must
    /// not block. A call may still be running when the subscription has just ended: it owns what it
    /// touches (base/Subscribers.h). The subscription ends with the returned object.
    virtual std::shared_ptr<void> subscribe(std::function<void()> changed) = 0;
    /// While the returned object lives, a paced program waits for its holder to read() further.
    virtual std::shared_ptr<void> reading() { return nullptr; }
};

/// An execution in a list: its sort key, and the id to read it by.
struct ListedExecution {
    std::string id;
    std::string started_at;
};

/// Starts and finds executions, scoped to the principal's tenant like Workspaces. Thread-safe.
class Executions {
public:
    virtual ~Executions() = default;
    /// Sends the work to the agent; it may already have finished when this returns.
    virtual std::shared_ptr<Execution> start(const Principal& who, const std::string& workspace,
                                             const ExecutionRequest& request) = 0;
    /// One shot: claims a workspace, as Workspaces::create(), that ends with the execution.
    virtual Task<std::shared_ptr<Execution>> startOneShot(Principal who, WorkspaceRequest where,
                                                          ExecutionRequest request) = 0;
    /// Also finds ended ones, for an hour after their workspace's end, and across restarts.
    virtual std::shared_ptr<Execution> find(const Principal& who, const std::string& id) = 0;
    /// The executions of one workspace, newest first. Reads none of their records.
    virtual std::vector<ListedExecution> list(const Principal& who,
                                              const std::string& workspace) = 0;
    /// An execution of a list, with almost none of its output if it has ended; null if it is gone
    /// or cannot be read.
    virtual std::shared_ptr<Execution> listed(const Principal& who, const std::string& id) = 0;
    /// The running executions in workspaces whose results `who` may see, ordered by id.
    virtual std::vector<std::shared_ptr<Execution>> running(const Principal& who) = 0;
    /// `name`: "INT", "TERM", "KILL", … Error(Conflict) if it has ended.
    virtual void signal(const Principal& who, const std::string& id, std::string_view name) = 0;
    virtual void resize(const Principal& who, const std::string& id, unsigned columns,
                        unsigned rows) = 0;
    /// Error(Conflict) unless it was started with stdin_open (or a PTY) and runs; but only to close
    /// the input of one that has ended does nothing.
    virtual void writeStdin(const Principal& who, const std::string& id, std::string_view bytes,
                            bool close) = 0;
    /// Kills the whole tree; idempotent.
    virtual void kill(const Principal& who, const std::string& id) = 0;
};

}  // namespace hearth::controller
