#include <algorithm>

#include "controller/journal/Journal.h"

// Executions in the journal: their records, their output in pieces, and lists of them.

namespace hearth::controller {
namespace {

void dropOutput(Database& database, const std::string& id) {
    Statement(database, "DELETE FROM outputs WHERE execution = ?").bind(id).run();
}

}  // namespace

void Journal::record(const ExecutionRecord& r, Written written,
                     std::function<void(const PutPiece&)> apart, std::size_t apart_bytes) {
    JournalWriter::Item item;
    item.bytes = kRecordSize + r.document.size() + r.output.size() + apart_bytes;
    item.alone = true;
    item.tenant = r.tenant;
    item.written = std::move(written);
    item.write = [this, r, apart = std::move(apart)](Database& database) {
        dropOutput(database, r.id);  // of an earlier record of this execution
        Statement(database,
                  "INSERT OR REPLACE INTO executions (id, workspace, tenant, fingerprint, "
                  "document, output, ended_ms, started_at) VALUES (?,?,?,?,?,?,?,?)")
            .bind(r.id)
            .bind(r.workspace)
            .bind(r.tenant)
            .bind(r.fingerprint)
            .bind(r.document)
            .bindBlob(apart ? kOutputApart : r.output)
            .bind(r.ended_ms)
            .bind(r.started_at)
            .run();
        std::size_t size = r.document.size() + r.output.size();
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
        kept_.add(database, r.id, r.tenant, size);
    };
    writer_thread_.add(std::move(item));
}

std::optional<std::string> Journal::piece(const char* condition, Piece kind,
                                          const std::string& execution, std::uint64_t place,
                                          const std::string& tenant) {
    std::optional<std::string> found;
    read(tenant, [&](Database& database) {
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

std::optional<std::string> Journal::outputAt(const std::string& execution, std::uint64_t place,
                                             const std::string& tenant) {
    return piece("place <= ? ORDER BY place DESC", Piece::Output, execution, place, tenant);
}

std::optional<std::string> Journal::outputBehind(const std::string& execution, std::uint64_t place,
                                                 const std::string& tenant) {
    return piece("place > ? ORDER BY place", Piece::Output, execution, place, tenant);
}

std::optional<std::string> Journal::resultOf(const std::string& execution, std::size_t index,
                                             const std::string& tenant) {
    return piece("place = ?", Piece::Result, execution, index, tenant);
}

std::optional<ExecutionRecord> Journal::execution(const std::string& id,
                                                  const std::string& tenant) {
    flush(kReadYourWrites);
    return listedExecution(id, tenant);
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

std::vector<ExecutionLine> Journal::executionsOf(const std::string& workspace,
                                                 const std::string& tenant) {
    flush(kReadYourWrites);
    std::vector<ExecutionLine> found;
    read(tenant, [&](Database& database) {
        // Reads only the index, so it names no other columns.
        Statement row(database,
                      "SELECT id, tenant, started_at FROM executions "
                      "WHERE workspace = ? ORDER BY ended_ms DESC, id DESC LIMIT 200");
        row.bind(workspace);
        while (row.step()) {
            found.push_back({row.text(0), row.text(1), row.text(2)});
        }
    });
    return found;
}

std::optional<ExecutionRecord> Journal::listedExecution(const std::string& id,
                                                        const std::string& tenant) {
    std::optional<ExecutionRecord> found;
    read(tenant, [&](Database& database) {
        Statement row(database,
                      "SELECT id, workspace, tenant, fingerprint, document, output, ended_ms "
                      "FROM executions WHERE id = ?");
        row.bind(id);
        if (row.step()) {
            found = ExecutionRecord{row.text(0), row.text(1), row.text(2),    row.text(3),
                                    row.text(4), row.text(5), row.integer(6), {}};
        }
    });
    return found;
}

}  // namespace hearth::controller
