#include "controller/Journal.h"

#include <nlohmann/json.hpp>

#include "base/Json.h"

namespace hearth::controller {
namespace {

constexpr auto kGather = std::chrono::milliseconds(2);
constexpr auto kPruneEvery = std::chrono::minutes(5);
constexpr std::int64_t kWorkspaceKeptMs = 24LL * 3600 * 1000;
constexpr std::int64_t kExecutionKeptMs = 3600LL * 1000;
/// History is written behind the answers; who reads it waits for what was queued before.
constexpr auto kReadYourWrites = std::chrono::seconds(1);
constexpr std::int64_t kEventsKept = 10'000;
/// A list has no longer outputs in it.
constexpr std::int64_t kListedOutput = 64LL << 10U;

WorkspaceRecord workspaceRow(const Statement& row) {
    WorkspaceRecord record{row.text(0), row.text(1), row.text(2),    row.text(3),  row.text(4),
                           row.text(5), row.text(6), row.integer(7), std::nullopt, row.text(9)};
    if (!row.null(8)) record.ended_ms = row.integer(8);
    return record;
}

ContextRecord contextRow(const Statement& row) {
    ContextRecord record{row.text(0), row.text(1), row.text(2),    row.text(3),  row.text(4),
                         row.text(5), row.text(6), row.integer(7), std::nullopt, row.text(9)};
    if (!row.null(8)) record.ended_ms = row.integer(8);
    return record;
}

ExecutionRecord executionRow(const Statement& row) {
    return {row.text(0), row.text(1), row.text(2),   row.text(3),
            row.text(4), row.text(5), row.integer(6)};
}

constexpr const char* kWorkspaceColumns =
    "SELECT id, tenant, pool, sandbox, claim_id, fingerprint, name, created_ms, ended_ms, reason "
    "FROM workspaces WHERE ";
constexpr const char* kContextColumns =
    "SELECT id, workspace, tenant, language, name, cwd, fingerprint, created_ms, ended_ms, reason "
    "FROM contexts WHERE ";
constexpr const char* kExecutionColumns =
    "SELECT id, workspace, tenant, fingerprint, document, output, ended_ms FROM executions WHERE ";

/// Each execution with the bytes of output that are kept of it, wherever they stand.
constexpr const char* kSizes =
    "(SELECT id, tenant, length(output) + coalesce((SELECT sum(length(bytes)) FROM outputs "
    "WHERE execution = id), 0) AS size FROM executions)";

std::uint64_t keptOutput(Database& database) {
    Statement sum(database, std::string("SELECT coalesce(sum(size), 0) FROM ") + kSizes);
    sum.step();
    return static_cast<std::uint64_t>(sum.integer(0));
}

void dropOutput(Database& database, const std::string& id) {
    Statement(database, "DELETE FROM outputs WHERE execution = ?").bind(id).run();
}

}  // namespace

Journal::Journal(const std::string& path, const Clock& clock, metrics::Log& log,
                 std::uint64_t most_output)
    : clock_(clock),
      log_(log),
      most_output_(most_output),
      writer_(path),
      reader_(path),
      thread_([this](const std::stop_token& stop) { writeLoop(stop); }) {}

Journal::~Journal() {
    thread_.request_stop();
    alarm_.ringIn(std::chrono::nanoseconds(0));
}

void Journal::write(Write write, Written written) {
    const std::lock_guard lock(mutex_);
    queue_.push_back({std::move(write), std::move(written)});
    ++queued_;
    // Answers first: what they queue is written together, and not beside them.
    if (queue_.size() == 1) alarm_.ringIn(kGather);
}

void Journal::writeNow(const Write& write) {
    const std::lock_guard lock(writer_mutex_);
    writer_.execute("BEGIN IMMEDIATE");
    try {
        write(writer_);
        writer_.execute("COMMIT");
    } catch (...) {
        writer_.execute("ROLLBACK");
        throw;
    }
}

void Journal::read(const Write& query) {
    const std::lock_guard lock(reader_mutex_);
    query(reader_);
}

void Journal::flush(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    const std::uint64_t target = queued_;
    written_some_.wait_for(lock, timeout, [&] { return written_ >= target; });
}

void Journal::writeLoop(const std::stop_token& stop) {
    while (true) {
        std::deque<Item> batch;
        {
            const std::lock_guard lock(mutex_);
            batch.swap(queue_);
        }
        if (batch.empty()) {
            if (stop.stop_requested()) return;
            alarm_.wait();
            continue;
        }
        const std::size_t count = batch.size();
        writeBatch(batch);
        batch.clear();  // whoever waits for it may end what its callbacks hold
        {
            const std::lock_guard lock(mutex_);
            written_ += count;
        }
        written_some_.notify_all();
    }
}

void Journal::writeBatch(std::deque<Item>& batch) {
    bool durable = true;
    try {
        const bool prune_now = clock_.now() - pruned_at_ > kPruneEvery;
        writeNow([&](Database& database) {
            for (const Item& item : batch) item.write(database);
            if (prune_now) prune(database);
        });
        if (prune_now) pruned_at_ = clock_.now();
    } catch (const std::exception& e) {
        durable = false;
        log_.error("journal.write_failed", {{"lost_records", batch.size()}, {"error", e.what()}});
    }
    for (const Item& item : batch) {
        if (!item.written) continue;
        try {
            item.written(durable);
        } catch (const std::exception& e) {
            log_.error("journal.callback_failed", {{"error", e.what()}});
        }
    }
}

void Journal::prune(Database& database) {
    const std::int64_t now = toUnixMillis(clock_.wall());
    Statement(database, "DELETE FROM workspaces WHERE ended_ms < ?")
        .bind(now - kWorkspaceKeptMs)
        .run();
    Statement(database, "DELETE FROM contexts WHERE ended_ms < ?")
        .bind(now - kWorkspaceKeptMs)
        .run();
    // One hour after the end of their workspace; those of a workspace nobody knows, an hour after
    // their own.
    Statement(database,
              "DELETE FROM executions WHERE ended_ms < ? AND workspace IN "
              "(SELECT id FROM workspaces WHERE ended_ms < ?)")
        .bind(now - kExecutionKeptMs)
        .bind(now - kExecutionKeptMs)
        .run();
    Statement(database,
              "DELETE FROM executions WHERE ended_ms < ? AND workspace NOT IN "
              "(SELECT id FROM workspaces)")
        .bind(now - kExecutionKeptMs)
        .run();
    Statement(database, "DELETE FROM outputs WHERE execution NOT IN (SELECT id FROM executions)")
        .run();
    Statement(database, "DELETE FROM events WHERE id <= (SELECT max(id) FROM events) - ?")
        .bind(kEventsKept)
        .run();
}

void Journal::shedOutput(Database& database, std::size_t added) {
    kept_output_ = kept_output_ ? *kept_output_ + added : keptOutput(database);
    if (*kept_output_ <= most_output_) return;
    // Well below the limit, so that it is not counted again for each execution.
    for (kept_output_ = keptOutput(database); *kept_output_ > most_output_ / 4 * 3;
         kept_output_ = keptOutput(database)) {
        Statement most(database, std::string("SELECT tenant FROM ") + kSizes +
                                     " WHERE size > 1 GROUP BY tenant ORDER BY sum(size) DESC "
                                     "LIMIT 1");
        if (!most.step()) return;
        const std::string tenant = most.text(0);
        std::vector<std::string> largest;
        Statement ids(database, std::string("SELECT id FROM ") + kSizes +
                                    " WHERE tenant = ? AND size > 1 ORDER BY size DESC LIMIT 64");
        ids.bind(tenant);
        while (ids.step()) largest.push_back(ids.text(0));
        for (const std::string& id : largest) {
            Statement(database, "UPDATE executions SET output = ? WHERE id = ?")
                .bindBlob(kNoOutput)
                .bind(id)
                .run();
            dropOutput(database, id);
        }
        log_.warn("journal.output_shed", {{"tenant", tenant}, {"kept_bytes", *kept_output_}});
    }
}

void Journal::record(const WorkspaceRecord& r) {
    write([r](Database& database) {
        Statement(database,
                  "INSERT OR REPLACE INTO workspaces (id, tenant, pool, sandbox, claim_id, "
                  "fingerprint, name, created_ms, ended_ms, reason) VALUES (?,?,?,?,?,?,?,?,?,?)")
            .bind(r.id)
            .bind(r.tenant)
            .bind(r.pool)
            .bind(r.sandbox)
            .bind(r.claim_id)
            .bind(r.fingerprint)
            .bind(r.name)
            .bind(r.created_ms)
            .bind(r.ended_ms)
            .bind(r.reason)
            .run();
    });
}

void Journal::ended(const std::string& workspace, std::int64_t ended_ms, const std::string& reason,
                    const std::string& sandbox) {
    write([workspace, ended_ms, reason, sandbox](Database& database) {
        Statement other(database, "SELECT 1 FROM workspaces WHERE id = ? AND sandbox <> ?");
        if (!sandbox.empty() && other.bind(workspace).bind(sandbox).step()) return;
        Statement(
            database,
            "UPDATE workspaces SET ended_ms = ?, reason = ? WHERE id = ? AND ended_ms IS NULL")
            .bind(ended_ms)
            .bind(reason)
            .bind(workspace)
            .run();
        Statement(database, "DELETE FROM meta WHERE key = ?").bind("labels/" + workspace).run();
        Statement(database,
                  "UPDATE contexts SET ended_ms = ?, reason = 'workspace' "
                  "WHERE workspace = ? AND ended_ms IS NULL")
            .bind(ended_ms)
            .bind(workspace)
            .run();
    });
}

void Journal::record(const ContextRecord& r) {
    write([r](Database& database) {
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
    write([context, ended_ms, reason](Database& database) {
        Statement(database,
                  "UPDATE contexts SET ended_ms = ?, reason = ? WHERE id = ? AND ended_ms IS NULL")
            .bind(ended_ms)
            .bind(reason)
            .bind(context)
            .run();
    });
}

void Journal::record(const ExecutionRecord& r, Written written,
                     std::function<void(const PutPiece&)> apart) {
    write(
        [this, r, apart = std::move(apart)](Database& database) {
            dropOutput(database, r.id);  // of the same one, recorded before
            Statement(database,
                      "INSERT OR REPLACE INTO executions (id, workspace, tenant, fingerprint, "
                      "document, output, ended_ms) VALUES (?,?,?,?,?,?,?)")
                .bind(r.id)
                .bind(r.workspace)
                .bind(r.tenant)
                .bind(r.fingerprint)
                .bind(r.document)
                .bindBlob(apart ? kOutputApart : r.output)
                .bind(r.ended_ms)
                .run();
            std::size_t size = r.output.size();
            if (apart) {
                apart([&](Piece kind, std::uint64_t place, std::string_view bytes) {
                    Statement(database,
                              "INSERT INTO outputs (execution, kind, place, bytes) "
                              "VALUES (?,?,?,?)")
                        .bind(r.id)
                        .bind(static_cast<std::int64_t>(kind))
                        .bind(static_cast<std::int64_t>(place))
                        .bindBlob(bytes)
                        .run();
                    size += bytes.size();
                });
            }
            shedOutput(database, size);
        },
        std::move(written));
}

std::optional<std::string> Journal::piece(const char* condition, Piece kind,
                                          const std::string& execution, std::uint64_t place) {
    std::optional<std::string> found;
    read([&](Database& database) {
        Statement row(
            database,
            std::string("SELECT bytes FROM outputs WHERE execution = ? AND kind = ? AND ") +
                condition + " LIMIT 1");
        row.bind(execution)
            .bind(static_cast<std::int64_t>(kind))
            .bind(static_cast<std::int64_t>(std::min<std::uint64_t>(place, INT64_MAX)));
        if (row.step()) found = row.text(0);
    });
    return found;
}

std::optional<std::string> Journal::outputAt(const std::string& execution, std::uint64_t place) {
    return piece("place <= ? ORDER BY place DESC", Piece::Output, execution, place);
}

std::optional<std::string> Journal::outputBehind(const std::string& execution,
                                                 std::uint64_t place) {
    return piece("place > ? ORDER BY place", Piece::Output, execution, place);
}

std::optional<std::string> Journal::resultOf(const std::string& execution, std::size_t index) {
    return piece("place = ?", Piece::Result, execution, index);
}

void Journal::record(const Event& e, std::int64_t time_ms) {
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

std::optional<ExecutionRecord> Journal::execution(const std::string& id) {
    flush(kReadYourWrites);
    std::optional<ExecutionRecord> found;
    read([&](Database& database) {
        Statement row(database, std::string(kExecutionColumns) + "id = ?");
        row.bind(id);
        if (row.step()) found = executionRow(row);
    });
    return found;
}

bool Journal::hasExecution(const std::string& id) {
    bool found = false;
    read([&](Database& database) {
        Statement row(database, "SELECT 1 FROM executions WHERE id = ?");
        row.bind(id);
        found = row.step();
    });
    return found;
}

std::vector<ExecutionRecord> Journal::executionsOf(const std::string& workspace) {
    flush(kReadYourWrites);
    std::vector<ExecutionRecord> found;
    read([&](Database& database) {
        Statement row(database,
                      "SELECT id, workspace, tenant, fingerprint, document, "
                      "CASE WHEN length(output) <= ?2 THEN output ELSE x'00' END, ended_ms "
                      "FROM executions WHERE workspace = ?1 ORDER BY ended_ms DESC LIMIT 200");
        row.bind(workspace).bind(kListedOutput);
        while (row.step()) found.push_back(executionRow(row));
    });
    return found;
}

void Journal::labels(const std::string& workspace,
                     const std::map<std::string, std::string>& labels) {
    setMeta("labels/" + workspace, dumpJson(Json(labels)));
}

std::optional<std::map<std::string, std::string>> Journal::labels(const std::string& workspace) {
    const std::string text = meta("labels/" + workspace);
    if (text.empty()) return std::nullopt;
    return parseJson(text).get<std::map<std::string, std::string>>();
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
    writeNow([&](Database& database) {
        Statement(database, "INSERT OR REPLACE INTO meta (key, value) VALUES (?,?)")
            .bind(key)
            .bind(value)
            .run();
    });
}

}  // namespace hearth::controller
