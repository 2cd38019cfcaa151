#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/Alarm.h"
#include "base/Clock.h"
#include "controller/Database.h"
#include "controller/Events.h"
#include "metrics/Log.h"

namespace hearth::controller {

/// A workspace as history knows it.
struct WorkspaceRecord {
    std::string id;
    std::string tenant;
    std::string pool;
    std::string sandbox;
    std::string claim_id;
    std::string fingerprint;
    std::string name;
    std::int64_t created_ms = 0;
    std::optional<std::int64_t> ended_ms;
    std::string reason;
};

/// A context as history knows it.
struct ContextRecord {
    std::string id;
    std::string workspace;
    std::string tenant;
    std::string language;
    std::string name;
    std::string cwd;
    std::string fingerprint;
    std::int64_t created_ms = 0;
    std::optional<std::int64_t> ended_ms;
    std::string reason;
};

/// Stands for an output that is not kept or not told; shorter than any chunk.
inline const std::string kNoOutput(1, '\0');
/// Stands for one that is kept apart, in pieces; as short.
inline const std::string kOutputApart(1, '\1');

/// An ended execution: `document` is its view as JSON without the output, `output` its chunks.
struct ExecutionRecord {
    std::string id;
    std::string workspace;
    std::string tenant;
    std::string fingerprint;
    std::string document;
    std::string output;
    std::int64_t ended_ms = 0;
};

/// History on disk, written behind the answers by one thread: nothing waits for it but what must be
/// durable first. Losing the file loses history, never a running workspace. Thread-safe.
class Journal {
public:
    /// Of executions' output `most_output` bytes are kept; beyond that the tenant who keeps most
    /// loses its largest ones (they become kNoOutput), so that nobody fills the disk of all.
    Journal(const std::string& path, const Clock& clock, metrics::Log& log,
            std::uint64_t most_output = 2ULL << 30U);
    /// Writes what is queued, then ends.
    ~Journal();
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    using Write = std::function<void(Database&)>;
    /// Called after the commit with true, or with false when it failed (already logged).
    using Written = std::function<void(bool durable)>;

    /// Queues a write; never blocks on the disk.
    void write(Write write, Written written = {});
    /// Runs now, on the caller's thread, in a transaction of its own; for declared objects, whose
    /// answer must be true. Throws what the database throws.
    void writeNow(const Write& write);
    /// Reads on the caller's thread.
    void read(const Write& query);
    /// Waits until everything queued so far is on disk, at most `timeout`.
    void flush(std::chrono::milliseconds timeout);

    void record(const WorkspaceRecord& record);
    /// Its contexts end with it. With a sandbox only if that is its: a later attempt of the same
    /// claim has the same id.
    void ended(const std::string& workspace, std::int64_t ended_ms, const std::string& reason,
               const std::string& sandbox = {});
    void record(const ContextRecord& record);
    void contextEnded(const std::string& context, std::int64_t ended_ms, const std::string& reason);
    enum class Piece { Output, Result };
    using PutPiece = std::function<void(Piece kind, std::uint64_t place, std::string_view bytes)>;
    /// `apart` brings the output that does not stand in the record itself, where there is any: it
    /// is called once from the journal's thread, so that no copy of a long output is ever made.
    void record(const ExecutionRecord& record, Written written,
                std::function<void(const PutPiece&)> apart = {});
    void record(const Event& event, std::int64_t time_ms);
    std::optional<WorkspaceRecord> workspace(const std::string& id);
    std::optional<WorkspaceRecord> workspaceByClaim(const std::string& claim_id);
    std::optional<ContextRecord> context(const std::string& id);
    /// Those that have not ended.
    std::vector<ContextRecord> openContexts(const std::string& workspace);
    std::optional<ExecutionRecord> execution(const std::string& id);
    /// Whether it is on disk; spares reading its output, and does not wait for what is queued.
    bool hasExecution(const std::string& id);
    /// Of output that is kept apart: the last piece that begins at or before `place`, and the first
    /// one that begins behind it; nullopt where there is none (any more).
    std::optional<std::string> outputAt(const std::string& execution, std::uint64_t place);
    std::optional<std::string> outputBehind(const std::string& execution, std::uint64_t place);
    std::optional<std::string> resultOf(const std::string& execution, std::size_t index);
    /// The last 200, newest first. Long output that stands in the record (as earlier versions wrote
    /// it) comes as kNoOutput.
    std::vector<ExecutionRecord> executionsOf(const std::string& workspace);

    /// Labels changed since the bind: on disk when this returns.
    void labels(const std::string& workspace, const std::map<std::string, std::string>& labels);
    /// nullopt if they were never changed.
    std::optional<std::map<std::string, std::string>> labels(const std::string& workspace);

    std::string meta(const std::string& key);
    void setMeta(const std::string& key, const std::string& value);

private:
    struct Item {
        Write write;
        Written written;
    };

    void writeLoop(const std::stop_token& stop);
    void writeBatch(std::deque<Item>& batch);
    void prune(Database& database);
    void shedOutput(Database& database, std::size_t added);
    std::optional<std::string> piece(const char* condition, Piece kind,
                                     const std::string& execution, std::uint64_t place);

    const Clock& clock_;
    metrics::Log& log_;
    const std::uint64_t most_output_;
    std::mutex writer_mutex_;  ///< one transaction at a time
    Database writer_;          // guarded by writer_mutex_
    std::mutex reader_mutex_;
    Database reader_;  // guarded by reader_mutex_
    std::mutex mutex_;
    std::condition_variable written_some_;
    Alarm alarm_;
    std::deque<Item> queue_;     // guarded by mutex_
    std::uint64_t queued_ = 0;   // guarded by mutex_
    std::uint64_t written_ = 0;  // guarded by mutex_
    TimePoint pruned_at_{};      // used by the thread only
    /// Bytes of output since the last count, and then; used by the thread only.
    std::optional<std::uint64_t> kept_output_;
    std::jthread thread_;
};

}  // namespace hearth::controller
