#include "controller/journal/Journal.h"

#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Json.h"
#include "base/ScopeExit.h"
#include "controller/journal/ChangeRecorder.h"
#include "controller/journal/DatabaseFile.h"
#include "controller/journal/SharedHistory.h"

namespace hearth::controller {
namespace {

constexpr auto kRetryWhenFull = std::chrono::seconds(5);
/// While results wait, a tenant's share is limit / kShares; all shares may use limit * kMostTimes.
constexpr std::uint64_t kShares = 8;
constexpr std::uint64_t kMostTimes = 4;
constexpr std::size_t kPruneSlice = 256;
/// Deleted rows, outputs included, stay in memory until the other replicas have the change.
constexpr std::size_t kSharedPruneSlice = 8;
constexpr auto kPruneEvery = std::chrono::minutes(5);

/// Returns nullopt for a damaged story: the record is valid without it.
std::optional<ClaimStory> storyOf(const std::string& text) {
    try {
        return storyFrom(parseJson(text));
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

WorkspaceRecord workspaceRow(const Statement& row) {
    WorkspaceRecord record{row.text(0), row.text(1), row.text(2),    row.text(3),  row.text(4),
                           row.text(5), row.text(6), row.integer(7), std::nullopt, row.text(9)};
    if (!row.null(8)) record.ended_ms = row.integer(8);
    if (!row.null(10)) record.story = storyOf(row.text(10));
    return record;
}

ContextRecord contextRow(const Statement& row) {
    ContextRecord record{row.text(0), row.text(1), row.text(2),    row.text(3),  row.text(4),
                         row.text(5), row.text(6), row.integer(7), std::nullopt, row.text(9)};
    if (!row.null(8)) record.ended_ms = row.integer(8);
    return record;
}

constexpr const char* kWorkspaceColumns =
    "SELECT id, tenant, pool, sandbox, claim_id, fingerprint, name, created_ms, ended_ms, reason, "
    "story FROM workspaces WHERE ";
constexpr const char* kContextColumns =
    "SELECT id, workspace, tenant, language, name, cwd, fingerprint, created_ms, ended_ms, reason "
    "FROM contexts WHERE ";
/// The tenants of the rows that a statement returned, and how many rows of each.
using Tenants = std::map<std::string, std::int64_t>;

Tenants tenantsOf(Statement& rows) {
    Tenants tenants;
    while (rows.step()) ++tenants[rows.text(0)];
    return tenants;
}

std::string labelsOf(const std::string& workspace) {
    return std::string(kLabelsOf) + workspace;
}

}  // namespace

Journal::Journal(const std::string& path, const Clock& clock, metrics::Log& log,
                 const JournalLimits& limits)
    : clock_(clock),
      log_(log),
      limits_(limits),
      writer_(path),
      readers_(path),
      pruner_(limits.shared == nullptr ? kPruneSlice : kSharedPruneSlice, limits.ended),
      kept_(limits.output, log),
      writer_thread_([this](const auto& items) { commit(items); }, limits.reserve, log,
                     limits.metrics) {
    if (writer_.exclusive()) {
        log.error(
            "database.disk_full",
            {{"path", path},
             {"hint",
              "free space there; other programs can read the database after the next start"}});
    }
    if (limits_.file != nullptr) limits_.file->keepSpare();
}

void Journal::write(Write write, Written written, std::size_t bytes) {
    JournalWriter::Item item;
    item.write = std::move(write);
    item.written = std::move(written);
    item.bytes = bytes;
    writer_thread_.add(std::move(item));
}

void Journal::writeOf(const std::string& tenant, std::size_t bytes, Write write) {
    JournalWriter::Item item;
    item.write = std::move(write);
    item.bytes = bytes + kRecordSize;
    item.tenant = tenant;
    writer_thread_.add(std::move(item));
}

void Journal::requireRoom(const std::string& tenant) const {
    if (writer_thread_.pendingBytes() < limits_.pending) return;
    const bool last_reserve = waiting() >= kMostTimes * limits_.pending;
    if (!last_reserve && writer_thread_.pendingOf(tenant) < share()) return;
    throw Error(ErrorCode::Unavailable,
                "results of earlier work wait for the disk of the data directory, which is full "
                "or slow")
        .hint("try again after Retry-After; if it stays, an operator frees space there")
        .retryAfter(kRetryWhenFull);
}

std::uint64_t Journal::share() const {
    return limits_.pending / kShares;
}

void Journal::writeNow(const Write& write) {
    const MutexLock lock(writer_mutex_);
    transact(write);
}

void Journal::writeSynced(const Write& write) {
    const MutexLock lock(writer_mutex_);
    writer_.execute("PRAGMA synchronous = FULL");  // has no effect within a transaction
    const ScopeExit relaxed([this]() HEARTH_REQUIRES(writer_mutex_) {
        try {
            writer_.execute("PRAGMA synchronous = NORMAL");
        } catch (const std::exception&) {
            return;  // later writes are slower, but not less safe
        }
    });
    transact(write);
}

void Journal::checkpoint() {
    const MutexLock lock(writer_mutex_);
    try {
        writer_.execute("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch (const std::exception& e) {
        log_.warn("journal.not_checkpointed", {{"error", e.what()}});
    }
}

void Journal::transact(const Write& write) {
    try {
        writer_.execute("BEGIN IMMEDIATE");
        try {
            if (limits_.shared != nullptr) {
                shared(write);
            } else {
                write(writer_);
            }
            writer_.execute("COMMIT");
        } catch (...) {
            writer_.rollBack();
            throw;
        }
        if (limits_.shared != nullptr) limits_.shared->committed();
    } catch (const DamagedDatabase& e) {
        tellDamage(e);
        throw;
    }
}

void Journal::shared(const Write& write) {
    limits_.shared->begin(writer_);
    ChangeRecorder recorder(writer_);
    write(writer_);
    limits_.shared->append(writer_, recorder.changes());
}

void Journal::tellDamage(const DamagedDatabase& damage) const {
    if (limits_.file != nullptr) limits_.file->damaged(damage.what());
}

void Journal::read(const std::string& tenant, const Write& query) {
    try {
        readers_.read(tenant, query);
    } catch (const DamagedDatabase& e) {
        tellDamage(e);
        throw;
    }
}

void Journal::flush(std::chrono::milliseconds timeout) {
    writer_thread_.flush(timeout);
}

void Journal::commit(const std::vector<const JournalWriter::Item*>& items) {
    try {
        writeNow([&](Database& database) {
            for (const JournalWriter::Item* item : items) item->write(database);
        });
    } catch (...) {
        kept_.forget();  // their counts include the rolled-back items
        pruner_.recount();
        throw;
    }
    pruneSlice();
    // The next slice comes after the items that were queued meanwhile.
    if (pruning_ && !closing_.load()) write([](Database&) {});
}

void Journal::pruneSlice() {
    if (!pruning_ && clock_.now() - pruned_at_ <= kPruneEvery) return;
    pruned_at_ = clock_.now();
    if (!pruning_) pruner_.recount();
    pruning_ = false;
    const HistoryPruner before = pruner_;
    try {
        writeNow([&](Database& database) {
            pruning_ = pruner_.prune(database, toUnixMillis(clock_.wall()));
        });
    } catch (const std::exception& e) {
        pruner_ = before;
        pruning_ = false;  // the disk may be full; a later call tries again
        log_.error("journal.prune_failed", {{"error", e.what()}});
    }
}

void Journal::record(const WorkspaceRecord& r) {
    const std::size_t bytes = r.id.size() + r.tenant.size() + r.pool.size() + r.sandbox.size() +
                              r.claim_id.size() + r.fingerprint.size() + r.name.size() +
                              r.reason.size();
    writeOf(r.tenant, bytes, [r](Database& database) {
        Statement insert(database,
                         "INSERT OR REPLACE INTO workspaces (id, tenant, pool, sandbox, claim_id, "
                         "fingerprint, name, created_ms, ended_ms, reason, story) "
                         "VALUES (?,?,?,?,?,?,?,?,?,?,?)");
        insert.bind(r.id)
            .bind(r.tenant)
            .bind(r.pool)
            .bind(r.sandbox)
            .bind(r.claim_id)
            .bind(r.fingerprint)
            .bind(r.name)
            .bind(r.created_ms)
            .bind(r.ended_ms)
            .bind(r.reason);
        if (r.story) {
            insert.bind(dumpJson(storyJson(*r.story)));
        } else {
            insert.bind(std::nullopt);
        }
        insert.run();
    });
}

void Journal::ended(const std::string& workspace, std::int64_t ended_ms, const std::string& reason,
                    const std::string& sandbox) {
    write([this, workspace, ended_ms, reason, sandbox](Database& database) {
        Statement other(database, "SELECT 1 FROM workspaces WHERE id = ? AND sandbox <> ?");
        if (!sandbox.empty() && other.bind(workspace).bind(sandbox).step()) return;
        const Tenants of = tenantsOf(Statement(database,
                                               "UPDATE workspaces SET ended_ms = ?, reason = ? "
                                               "WHERE id = ? AND ended_ms IS NULL RETURNING tenant")
                                         .bind(ended_ms)
                                         .bind(reason)
                                         .bind(workspace));
        Statement(database, "DELETE FROM meta WHERE key = ?").bind(labelsOf(workspace)).run();
        const Tenants contexts_of =
            tenantsOf(Statement(database,
                                "UPDATE contexts SET ended_ms = ?, reason = 'workspace' "
                                "WHERE workspace = ? AND ended_ms IS NULL RETURNING tenant")
                          .bind(ended_ms)
                          .bind(workspace));
        for (const auto& [tenant, rows] : of) pruner_.workspaceEnded(database, tenant);
        for (const auto& [tenant, rows] : contexts_of) {
            pruner_.contextsEnded(database, tenant, rows);
        }
    });
}

void Journal::forget(const std::string& workspace, const std::string& sandbox) {
    write([workspace, sandbox](Database& database) {
        Statement(database, "DELETE FROM workspaces WHERE id = ? AND sandbox = ?")
            .bind(workspace)
            .bind(sandbox)
            .run();
    });
}

void Journal::record(const ContextRecord& r) {
    const std::size_t bytes = r.id.size() + r.workspace.size() + r.tenant.size() +
                              r.language.size() + r.name.size() + r.cwd.size() +
                              r.fingerprint.size() + r.reason.size();
    writeOf(r.tenant, bytes, [r](Database& database) {
        Statement(database,
                  "INSERT OR REPLACE INTO contexts (id, workspace, tenant, language, name, cwd, "
                  "fingerprint, created_ms, ended_ms, reason) VALUES (?,?,?,?,?,?,?,?,?,?)")
            .bind(r.id)
            .bind(r.workspace)
            .bind(r.tenant)
            .bind(r.language)
            .bind(r.name)
            .bind(r.cwd)
            .bind(r.fingerprint)
            .bind(r.created_ms)
            .bind(r.ended_ms)
            .bind(r.reason)
            .run();
    });
}

void Journal::contextEnded(const std::string& context, std::int64_t ended_ms,
                           const std::string& reason) {
    write([this, context, ended_ms, reason](Database& database) {
        const Tenants of = tenantsOf(Statement(database,
                                               "UPDATE contexts SET ended_ms = ?, reason = ? "
                                               "WHERE id = ? AND ended_ms IS NULL RETURNING tenant")
                                         .bind(ended_ms)
                                         .bind(reason)
                                         .bind(context));
        for (const auto& [tenant, rows] : of) pruner_.contextsEnded(database, tenant, rows);
    });
}

void Journal::record(const Event& e, std::int64_t time_ms) {
    if (waiting() >= limits_.pending) return;
    write([e, time_ms](Database& database) {
        Statement(database,
                  "INSERT OR REPLACE INTO events (id, time_ms, type, resource, pool, tenant, "
                  "reason, message, trace) VALUES (?,?,?,?,?,?,?,?,?)")
            .bind(static_cast<std::int64_t>(e.id))
            .bind(time_ms)
            .bind(e.type)
            .bind(e.resource)
            .bind(e.pool)
            .bind(e.tenant)
            .bind(e.reason)
            .bind(e.message)
            .bind(e.trace_id)
            .run();
    });
}

std::optional<WorkspaceRecord> Journal::workspace(const std::string& id) {
    flush(kReadYourWrites);
    std::optional<WorkspaceRecord> found;
    read([&](Database& database) {
        Statement row(database, std::string(kWorkspaceColumns) + "id = ?");
        row.bind(id);
        if (row.step()) found = workspaceRow(row);
    });
    return found;
}

std::optional<WorkspaceRecord> Journal::workspaceByClaim(const std::string& claim_id) {
    flush(kReadYourWrites);
    std::optional<WorkspaceRecord> found;
    read([&](Database& database) {
        Statement row(database, std::string(kWorkspaceColumns) + "claim_id = ?");
        row.bind(claim_id);
        if (row.step()) found = workspaceRow(row);
    });
    return found;
}

std::optional<ContextRecord> Journal::context(const std::string& id) {
    flush(kReadYourWrites);
    std::optional<ContextRecord> found;
    read([&](Database& database) {
        Statement row(database, std::string(kContextColumns) + "id = ?");
        row.bind(id);
        if (row.step()) found = contextRow(row);
    });
    return found;
}

std::vector<ContextRecord> Journal::openContexts(const std::string& workspace) {
    flush(kReadYourWrites);
    std::vector<ContextRecord> found;
    read([&](Database& database) {
        Statement row(database,
                      std::string(kContextColumns) + "workspace = ? AND ended_ms IS NULL");
        row.bind(workspace);
        while (row.step()) found.push_back(contextRow(row));
    });
    return found;
}

void Journal::labels(const std::string& workspace,
                     const std::map<std::string, std::string>& labels) {
    flush(kReadYourWrites);  // the row may still belong to an attempt that failed
    writeNow([&](Database& database) {
        Statement(database,
                  "INSERT OR REPLACE INTO meta (key, value) SELECT ?, ? WHERE NOT EXISTS "
                  "(SELECT 1 FROM workspaces WHERE id = ? AND ended_ms IS NOT NULL)")
            .bind(labelsOf(workspace))
            .bind(dumpJson(Json(labels)))
            .bind(workspace)
            .run();
    });
}

std::optional<std::map<std::string, std::string>> Journal::labels(const std::string& workspace) {
    const std::string text = meta(labelsOf(workspace));
    if (text.empty()) return std::nullopt;
    try {
        return parseJson(text).get<std::map<std::string, std::string>>();
    } catch (const std::exception& e) {  // the labels of the bind are better than no workspace
        log_.error("journal.bad_labels", {{"workspace", workspace}, {"error", e.what()}});
        return std::nullopt;
    }
}

std::string Journal::meta(const std::string& key) {
    std::string value;
    read([&](Database& database) {
        Statement row(database, "SELECT value FROM meta WHERE key = ?");
        row.bind(key);
        if (row.step()) value = row.text(0);
    });
    return value;
}

void Journal::setMeta(const std::string& key, const std::string& value) {
    writeNow([&](Database& database) { putMeta(database, key, value); });
}

void Journal::putMeta(Database& database, const std::string& key, const std::string& value) {
    Statement(database, "INSERT OR REPLACE INTO meta (key, value) VALUES (?,?)")
        .bind(key)
        .bind(value)
        .run();
}

}  // namespace hearth::controller
