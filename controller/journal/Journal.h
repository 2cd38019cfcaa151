#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "controller/contract/Events.h"
#include "controller/contract/Timeline.h"
#include "controller/journal/Database.h"
#include "controller/journal/DiskReserve.h"
#include "controller/journal/HistoryPruner.h"
#include "controller/journal/JournalReaders.h"
#include "controller/journal/JournalWriter.h"
#include "controller/journal/KeptLedger.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"

namespace hearth::controller {

class DatabaseFile;
class SharedHistory;

/// A workspace as history stores it.
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
    std::optional<ClaimStory> story{};  ///< none if it was found after its record was lost
};

/// A context as history stores it.
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

/// Replaces an output that is not kept or not reported; shorter than any chunk.
inline const std::string kNoOutput(1, '\0');
/// Replaces an output that is stored apart, in pieces; equally short.
inline const std::string kOutputApart(1, '\1');

/// The most bytes of executions' output that a journal keeps.
inline constexpr std::uint64_t kMostOutput = 2ULL << 30U;

/// An ended execution: `document` is its view as JSON without the output, `output` has its chunks.
struct ExecutionRecord {
    std::string id;
    std::string workspace;
    std::string tenant;
    std::string fingerprint;
    std::string document;
    std::string output;
    std::int64_t ended_ms = 0;
    std::string started_at{};  ///< as in its document; the sort key of lists
};

/// The part of an ended execution that a list needs before the execution is read.
struct ExecutionLine {
    std::string id;
    std::string tenant;
    std::string started_at;
};

/// The limits of a journal, and the objects it reports to.
struct JournalLimits {
    /// How many bytes of executions' output are kept on disk.
    std::uint64_t output = kMostOutput;
    /// While this many bytes wait for the disk, no new work is admitted.
    std::uint64_t pending = 64ULL << 20U;
    HistoryPruner::Most ended{};
    const DiskReserve* reserve = nullptr;
    metrics::Metrics* metrics = nullptr;
    DatabaseFile* file = nullptr;     ///< receives reports of damage that an access finds
    SharedHistory* shared = nullptr;  ///< receives each transaction's changes; already leads
};

/// History on disk, written after the answers by one thread. An answer waits only for data that
/// must be durable first. A write that the disk refuses is tried again (JournalWriter). A loss of
/// the file loses history, never a running workspace. Thread-safe.
class Journal {
public:
    /// Beyond `limits.output`, the tenant that keeps most loses its largest outputs (they become
    /// kNoOutput), so no tenant can fill the disk for all.
    Journal(const std::string& path, const Clock& clock, metrics::Log& log,
            const JournalLimits& limits);
    Journal(const std::string& path, const Clock& clock, metrics::Log& log)
        : Journal(path, clock, log, JournalLimits{}) {}
    /// Writes the queued items, as far as the disk accepts them, then ends.
    ~Journal() { closing_ = true; }
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    using Write = std::function<void(Database&)>;
    /// Called after the commit with true, or with false if the write was given up (already logged).
    using Written = std::function<void(bool durable)>;

    /// Queues a write that uses about `bytes` of memory; never blocks on the disk.
    void write(Write write, Written written = {}, std::size_t bytes = kRecordSize);
    /// Throws Error(Unavailable) while too much waits for the disk; called before work that ends in
    /// a record. A tenant with little waiting may continue until the shares of many tenants wait,
    /// so one tenant's results do not stop the others, however large they are.
    void requireRoom(const std::string& tenant) const;
    /// Writes at once, on the caller's thread, in its own transaction; for declared objects, whose
    /// answer must be true. Throws the database's errors.
    void writeNow(const Write& write);
    /// Like writeNow(), and synced: the data survives a loss of power.
    void writeSynced(const Write& write);
    /// Reads on the caller's thread, for the server itself or for a tenant. Every read for a
    /// tenant's request that may be long names the tenant (JournalReaders).
    void read(const Write& query) { read({}, query); }
    void read(const std::string& tenant, const Write& query);
    /// Waits up to `timeout` until everything queued so far is on disk, except items that the disk
    /// has refused.
    void flush(std::chrono::milliseconds timeout);

    void record(const WorkspaceRecord& record);
    /// Ends the workspace and its contexts. With `sandbox`, only if the workspace has that sandbox:
    /// a later attempt of the same claim has the same id.
    void ended(const std::string& workspace, std::int64_t ended_ms, const std::string& reason,
               const std::string& sandbox = {});
    /// Removes a workspace that was never reported to anybody, if it still has that sandbox.
    void forget(const std::string& workspace, const std::string& sandbox);
    void record(const ContextRecord& record);
    void contextEnded(const std::string& context, std::int64_t ended_ms, const std::string& reason);
    enum class Piece { Output, Result };
    using PutPiece = std::function<void(Piece kind, std::uint64_t place, std::string_view bytes)>;
    /// `apart` writes output that is not in the record itself, if there is any (it uses
    /// about `apart_bytes`). The journal's thread calls it, so a long output is never
    /// copied.
    void record(const ExecutionRecord& record, Written written,
                std::function<void(const PutPiece&)> apart = {}, std::size_t apart_bytes = 0);
    /// Dropped while too much of too many tenants waits for the disk.
    void record(const Event& event, std::int64_t time_ms);
    std::optional<WorkspaceRecord> workspace(const std::string& id);
    std::optional<WorkspaceRecord> workspaceByClaim(const std::string& claim_id);
    std::optional<ContextRecord> context(const std::string& id);
    /// Contexts of the workspace that have not ended.
    std::vector<ContextRecord> openContexts(const std::string& workspace);
    std::optional<ExecutionRecord> execution(const std::string& id, const std::string& tenant = {});
    /// True if it is on disk. Does not read its output, and does not wait for queued items.
    bool hasExecution(const std::string& id);
    /// Pieces of output that is stored apart: the last one that begins at or before `place`, and
    /// the first one that begins after it; nullopt if there is none (any more).
    std::optional<std::string> outputAt(const std::string& execution, std::uint64_t place,
                                        const std::string& tenant = {});
    std::optional<std::string> outputBehind(const std::string& execution, std::uint64_t place,
                                            const std::string& tenant = {});
    std::optional<std::string> resultOf(const std::string& execution, std::size_t index,
                                        const std::string& tenant = {});
    /// The last 200, latest end first; reads no execution itself.
    std::vector<ExecutionLine> executionsOf(const std::string& workspace,
                                            const std::string& tenant = {});
    /// Reads an execution of such a list. Does not wait for queued items.
    std::optional<ExecutionRecord> listedExecution(const std::string& id,
                                                   const std::string& tenant = {});

    /// Stores labels changed since the bind: on disk at the return, unless the workspace has ended.
    void labels(const std::string& workspace, const std::map<std::string, std::string>& labels);
    /// Returns nullopt if they were never changed.
    std::optional<std::map<std::string, std::string>> labels(const std::string& workspace);

    metrics::Log& log() const { return log_; }
    /// Moves the WAL into the file itself: SQLite treats a damaged or lost WAL as no error, and
    /// only loses its writes. A failure is logged.
    void checkpoint();
    std::string meta(const std::string& key);
    void setMeta(const std::string& key, const std::string& value);
    /// Like setMeta(), as a part of another write.
    static void putMeta(Database& database, const std::string& key, const std::string& value);

private:
    static constexpr std::size_t kRecordSize = 512;
    /// How long a reader waits for items that were queued before its read.
    static constexpr auto kReadYourWrites = std::chrono::seconds(1);

    void transact(const Write& write) HEARTH_REQUIRES(writer_mutex_);
    /// A write whose changes are sent to the other replicas.
    void shared(const Write& write) HEARTH_REQUIRES(writer_mutex_);
    void tellDamage(const DamagedDatabase& damage) const;
    void commit(const std::vector<const JournalWriter::Item*>& items);
    /// Removes one slice of expired history; called by the thread only.
    void pruneSlice();
    /// Like write(), counted for the tenant with `bytes` more than the record's own size.
    void writeOf(const std::string& tenant, std::size_t bytes, Write write);
    /// The bytes that wait for the disk, counting each tenant up to its share, so that one tenant
    /// alone shuts out no other.
    std::uint64_t waiting() const { return writer_thread_.pendingShares(share()); }
    std::uint64_t share() const;
    std::optional<std::string> piece(const char* condition, Piece kind,
                                     const std::string& execution, std::uint64_t place,
                                     const std::string& tenant);

    const Clock& clock_;
    metrics::Log& log_;
    const JournalLimits limits_;
    Mutex writer_mutex_;  ///< one transaction at a time
    Database writer_ HEARTH_GUARDED_BY(writer_mutex_);
    JournalReaders readers_;
    TimePoint pruned_at_{};  // used by the thread only
    /// There may be more to prune; used by the thread only.
    bool pruning_ = false;
    std::atomic<bool> closing_{false};
    HistoryPruner pruner_;  // used by the thread only
    /// Used only by the writer thread, once it runs.
    KeptLedger kept_;
    JournalWriter writer_thread_;
};

}  // namespace hearth::controller
