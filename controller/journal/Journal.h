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
    std::optional<ClaimStory> story{};  ///< none of one that was found after its record was lost
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

/// Bytes of executions' output that a journal keeps.
inline constexpr std::uint64_t kMostOutput = 2ULL << 30U;

/// An ended execution: `document` is its view as JSON without the output, `output` its chunks.
struct ExecutionRecord {
    std::string id;
    std::string workspace;
    std::string tenant;
    std::string fingerprint;
    std::string document;
    std::string output;
    std::int64_t ended_ms = 0;
    std::string started_at{};  ///< as its document says: lists are in this order
};

/// The part of an ended execution that lists are made of before it is read.
struct ExecutionLine {
    std::string id;
    std::string tenant;
    std::string started_at;
};

/// The limits of a journal, and where it reports its state.
struct JournalLimits {
    /// Of executions' output so many bytes are kept on disk.
    std::uint64_t output = kMostOutput;
    /// While so many bytes wait for the disk, no new work is let in.
    std::uint64_t pending = 64ULL << 20U;
    HistoryPruner::Most ended{};
    const DiskReserve* reserve = nullptr;
    metrics::Metrics* metrics = nullptr;
    DatabaseFile* file = nullptr;     ///< is told of damage that an access finds
    SharedHistory* shared = nullptr;  ///< is given each transaction's changes; it leads already
};

/// History on disk, written behind the answers by one thread: nothing waits for it but what must be
/// durable first. What the disk does not take is tried again (JournalWriter). Losing the file loses
/// history, never a running workspace. Thread-safe.
class Journal {
public:
    /// Beyond `limits.output` the tenant who keeps most loses its largest outputs (they become
    /// kNoOutput), so that nobody fills the disk of all.
    Journal(const std::string& path, const Clock& clock, metrics::Log& log,
            const JournalLimits& limits);
    Journal(const std::string& path, const Clock& clock, metrics::Log& log)
        : Journal(path, clock, log, JournalLimits{}) {}
    /// Writes what is queued, as far as the disk takes it, then ends.
    ~Journal() { closing_ = true; }
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    using Write = std::function<void(Database&)>;
    /// Called after the commit with true, or with false when it was given up (already logged).
    using Written = std::function<void(bool durable)>;

    /// Queues a write that holds about `bytes` of memory; never blocks on the disk.
    void write(Write write, Written written = {}, std::size_t bytes = kRecordSize);
    /// Throws Error(Unavailable) while too much waits for the disk: whoever starts work that ends
    /// in a record asks first. Who has little in it goes on until many tenants have their share in
    /// it, so that one tenant's results do not stop the others, however large they are.
    void requireRoom(const std::string& tenant) const;
    /// Runs now, on the caller's thread, in a transaction of its own; for declared objects, whose
    /// answer must be true. Throws what the database throws.
    void writeNow(const Write& write);
    /// The same, and synced: what it wrote survives a loss of power.
    void writeSynced(const Write& write);
    /// Reads on the caller's thread, for the server itself or for a tenant: whatever a tenant's
    /// request reads, and may be long, names it (JournalReaders).
    void read(const Write& query) { read({}, query); }
    void read(const std::string& tenant, const Write& query);
    /// Waits until everything queued so far is on disk, at most `timeout`; not for what the disk
    /// has refused.
    void flush(std::chrono::milliseconds timeout);

    void record(const WorkspaceRecord& record);
    /// Its contexts end with it. With a sandbox only if that is its: a later attempt of the same
    /// claim has the same id.
    void ended(const std::string& workspace, std::int64_t ended_ms, const std::string& reason,
               const std::string& sandbox = {});
    /// As if the workspace had never been: nobody was told of it. Only while it is that sandbox's.
    void forget(const std::string& workspace, const std::string& sandbox);
    void record(const ContextRecord& record);
    void contextEnded(const std::string& context, std::int64_t ended_ms, const std::string& reason);
    enum class Piece { Output, Result };
    using PutPiece = std::function<void(Piece kind, std::uint64_t place, std::string_view bytes)>;
    /// `apart` brings the output that does not stand in the record itself, where there is any (it
    /// holds about `apart_bytes`): it is called from the journal's thread, so that no copy of a
    /// long output is ever made.
    void record(const ExecutionRecord& record, Written written,
                std::function<void(const PutPiece&)> apart = {}, std::size_t apart_bytes = 0);
    /// Not kept while too much of too many tenants waits for the disk.
    void record(const Event& event, std::int64_t time_ms);
    std::optional<WorkspaceRecord> workspace(const std::string& id);
    std::optional<WorkspaceRecord> workspaceByClaim(const std::string& claim_id);
    std::optional<ContextRecord> context(const std::string& id);
    /// Those that have not ended.
    std::vector<ContextRecord> openContexts(const std::string& workspace);
    std::optional<ExecutionRecord> execution(const std::string& id, const std::string& tenant = {});
    /// Whether it is on disk; spares reading its output, and does not wait for what is queued.
    bool hasExecution(const std::string& id);
    /// Of output that is kept apart: the last piece that begins at or before `place`, and the first
    /// one that begins behind it; nullopt where there is none (any more).
    std::optional<std::string> outputAt(const std::string& execution, std::uint64_t place,
                                        const std::string& tenant = {});
    std::optional<std::string> outputBehind(const std::string& execution, std::uint64_t place,
                                            const std::string& tenant = {});
    std::optional<std::string> resultOf(const std::string& execution, std::size_t index,
                                        const std::string& tenant = {});
    /// The last 200, latest end first; reads none of them.
    std::vector<ExecutionLine> executionsOf(const std::string& workspace,
                                            const std::string& tenant = {});
    /// An execution of such a list. Does not wait for what is queued, and long output that stands
    /// in the record (as earlier versions wrote it) comes as kNoOutput.
    std::optional<ExecutionRecord> listedExecution(const std::string& id,
                                                   const std::string& tenant = {});

    /// Labels changed since the bind: on disk when this returns, unless the workspace has ended.
    void labels(const std::string& workspace, const std::map<std::string, std::string>& labels);
    /// nullopt if they were never changed.
    std::optional<std::map<std::string, std::string>> labels(const std::string& workspace);

    metrics::Log& log() const { return log_; }
    /// Moves what is written into the file itself: a damaged or lost WAL is no error to SQLite, it
    /// only takes writes back. A failure is logged.
    void checkpoint();
    std::string meta(const std::string& key);
    void setMeta(const std::string& key, const std::string& value);
    /// As setMeta(), as a part of another write.
    static void putMeta(Database& database, const std::string& key, const std::string& value);

private:
    static constexpr std::size_t kRecordSize = 512;
    /// History is written behind the answers; a reader waits for what was queued before.
    static constexpr auto kReadYourWrites = std::chrono::seconds(1);

    void transact(const Write& write) HEARTH_REQUIRES(writer_mutex_);
    /// A write whose changes other replicas get.
    void shared(const Write& write) HEARTH_REQUIRES(writer_mutex_);
    void tellDamage(const DamagedDatabase& damage) const;
    void commit(const std::vector<const JournalWriter::Item*>& items);
    /// One slice of what is kept no longer; used by the thread only.
    void pruneSlice();
    /// write() of what counts as the tenant's: `bytes` beside the record's own size.
    void writeOf(const std::string& tenant, std::size_t bytes, Write write);
    /// Bytes that wait for the disk, where no tenant counts with more than its share: one alone
    /// shuts out nobody else.
    std::uint64_t waiting() const { return writer_thread_.pendingShares(share()); }
    std::uint64_t share() const;
    /// Writes what a start can do without; where it fails, the log says so.
    void atStart(const char* failure, const Write& write);
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
    /// Used by the thread only; there may be more to prune.
    bool pruning_ = false;
    std::atomic<bool> closing_{false};
    HistoryPruner pruner_;  // used by the thread only
    /// Used by the writer thread alone, once it runs.
    KeptLedger kept_;
    JournalWriter writer_thread_;
};

}  // namespace hearth::controller
