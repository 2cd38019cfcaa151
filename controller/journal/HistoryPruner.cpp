#include "controller/journal/HistoryPruner.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "controller/journal/KeptLedger.h"

namespace hearth::controller {
namespace {

constexpr std::int64_t kWorkspaceKeptMs = 24LL * 3600 * 1000;
constexpr std::int64_t kExecutionKeptMs = 3600LL * 1000;
/// How many rows one end removes: more than one, because an earlier end may have left some.
constexpr std::int64_t kAtOnce = 16;

struct Row {
    std::string id;
    std::int64_t ended_ms = 0;
    std::string workspace;
};

}  // namespace

bool HistoryPruner::prune(Database& database, std::int64_t now_ms) {
    used_ = 0;
    pruneEndedWork(database, now_ms - kExecutionKeptMs);
    if (left() > 0) pruneStrayWork(database, now_ms - kExecutionKeptMs);
    if (left() > 0) pruneWorkspaces(database, now_ms - kWorkspaceKeptMs);
    if (left() > 0) pruneContexts(database, now_ms - kWorkspaceKeptMs);
    if (left() > 0) pruneLabels(database, now_ms);
    if (left() > 0) pruneEvents(database);
    return left() <= 0;
}

void HistoryPruner::dropExecution(Database& database, const std::string& id) {
    Statement(database, "DELETE FROM outputs WHERE execution = ?").bind(id).run();
    Statement(database, "DELETE FROM executions WHERE id = ?").bind(id).run();
    KeptLedger::drop(database, id);
}

bool HistoryPruner::dropExecutions(Database& database, const std::string& workspace) {
    const std::int64_t most = left();
    std::vector<std::string> ids;
    {
        Statement rows(database, "SELECT id FROM executions WHERE workspace = ? LIMIT ?");
        rows.bind(workspace).bind(most);
        while (rows.step()) ids.push_back(rows.text(0));
    }
    for (const std::string& id : ids) {
        use();
        dropExecution(database, id);
    }
    return static_cast<std::int64_t>(ids.size()) < most;
}

void HistoryPruner::pruneEndedWork(Database& database, std::int64_t before) {
    std::vector<Row> ended;
    {
        Statement rows(database,
                       "SELECT id, ended_ms FROM workspaces WHERE (ended_ms, id) > (?, ?) "
                       "AND ended_ms < ? ORDER BY ended_ms, id LIMIT ?");
        rows.bind(ended_.ended_ms).bind(ended_.id).bind(before).bind(left());
        while (rows.step()) ended.push_back({rows.text(0), rows.integer(1), {}});
    }
    for (const Row& row : ended) {
        if (left() <= 0 || !dropExecutions(database, row.id)) return;
        use();
        ended_ = {row.ended_ms, row.id};
    }
}

void HistoryPruner::pruneStrayWork(Database& database, std::int64_t before) {
    std::vector<Row> old;
    {
        Statement rows(database,
                       "SELECT id, ended_ms, workspace FROM executions WHERE (ended_ms, id) > "
                       "(?, ?) AND ended_ms < ? ORDER BY ended_ms, id LIMIT ?");
        rows.bind(stray_.ended_ms).bind(stray_.id).bind(before).bind(left());
        while (rows.step()) old.push_back({rows.text(0), rows.integer(1), rows.text(2)});
    }
    for (const Row& row : old) {
        use();
        bool known = false;
        {
            Statement workspace(database, "SELECT 1 FROM workspaces WHERE id = ?");
            known = workspace.bind(row.workspace).step();
        }
        // An execution of a known workspace is removed with its workspace.
        if (!known) dropExecution(database, row.id);
        stray_ = {row.ended_ms, row.id};
    }
}

void HistoryPruner::pruneWorkspaces(Database& database, std::int64_t before) {
    std::vector<std::pair<std::string, std::string>> old;
    {
        Statement rows(database, "SELECT id, tenant FROM workspaces WHERE ended_ms < ? LIMIT ?");
        rows.bind(before).bind(left());
        while (rows.step()) old.emplace_back(rows.text(0), rows.text(1));
    }
    for (const auto& [id, tenant] : old) {
        if (left() <= 0 || !dropExecutions(database, id)) return;
        use();
        Statement(database, "DELETE FROM workspaces WHERE id = ?").bind(id).run();
        workspaces_.removed(tenant);
    }
}

void HistoryPruner::pruneContexts(Database& database, std::int64_t before) {
    std::vector<std::pair<std::string, std::string>> old;
    {
        Statement rows(database, "SELECT id, tenant FROM contexts WHERE ended_ms < ? LIMIT ?");
        rows.bind(before).bind(left());
        while (rows.step()) old.emplace_back(rows.text(0), rows.text(1));
    }
    for (const auto& [id, tenant] : old) {
        use();
        Statement(database, "DELETE FROM contexts WHERE id = ?").bind(id).run();
        contexts_.removed(tenant);
    }
}

void HistoryPruner::Ended::removed(const std::string& tenant) {
    const auto found = rows.find(tenant);
    if (found != rows.end()) --found->second;
}

void HistoryPruner::recount() {
    workspaces_.rows.clear();
    contexts_.rows.clear();
    events_.reset();
}

std::vector<std::string> HistoryPruner::beyond(Database& database, const char* table, Ended& ended,
                                               const std::string& tenant, std::int64_t rows) {
    const std::string of =
        std::string(" FROM ") + table + " WHERE tenant = ? AND ended_ms IS NOT NULL";
    const auto [count, first] = ended.rows.try_emplace(tenant, 0);
    if (first) {
        Statement all(database, "SELECT count(*)" + of);
        all.bind(tenant).step();
        count->second = all.integer(0);
    } else {
        count->second += rows;
    }
    std::vector<std::string> ids;
    if (count->second <= ended.most) return ids;
    Statement oldest(database, "SELECT id" + of + " ORDER BY ended_ms, id LIMIT ?");
    oldest.bind(tenant).bind(std::min(count->second - ended.most, rows + kAtOnce));
    while (oldest.step()) ids.push_back(oldest.text(0));
    return ids;
}

void HistoryPruner::contextsEnded(Database& database, const std::string& tenant,
                                  std::int64_t rows) {
    for (const std::string& id : beyond(database, "contexts", contexts_, tenant, rows)) {
        Statement(database, "DELETE FROM contexts WHERE id = ?").bind(id).run();
        contexts_.removed(tenant);
    }
}

void HistoryPruner::workspaceEnded(Database& database, const std::string& tenant) {
    for (const std::string& id : beyond(database, "workspaces", workspaces_, tenant, 1)) {
        if (!dropSeenExecutions(database, id)) return;  // the tenant's next end continues
        Statement(database, "DELETE FROM workspaces WHERE id = ?").bind(id).run();
        workspaces_.removed(tenant);
    }
}

bool HistoryPruner::dropSeenExecutions(Database& database, const std::string& workspace) {
    std::vector<std::string> ids;
    {
        Statement rows(database,
                       "SELECT id FROM executions WHERE workspace = ? AND (ended_ms, id) <= (?, ?) "
                       "LIMIT ?");
        rows.bind(workspace).bind(stray_.ended_ms).bind(stray_.id).bind(kAtOnce);
        while (rows.step()) ids.push_back(rows.text(0));
    }
    for (const std::string& id : ids) dropExecution(database, id);
    return static_cast<std::int64_t>(ids.size()) < kAtOnce;
}

void HistoryPruner::pruneLabels(Database& database, std::int64_t now_ms) {
    if (now_ms < labels_.next_ms) return;
    const std::int64_t most = left();
    std::vector<std::string> keys;
    std::vector<std::string> gone;
    {
        // A crash may have lost the row of a living workspace: it is rewritten after the start.
        Statement rows(database,
                       "SELECT key, coalesce((SELECT ended_ms IS NOT NULL FROM workspaces WHERE "
                       "id = substr(key, ?)), ?) FROM meta WHERE key > ? AND key < ? ORDER BY key "
                       "LIMIT ?");
        rows.bind(static_cast<std::int64_t>(kLabelsOf.size() + 1))
            .bind(std::int64_t{labels_.first ? 0 : 1})
            .bind(labels_.key)
            .bind(std::string(kLabelsOf) + "\xff")
            .bind(most);
        while (rows.step()) {
            keys.push_back(rows.text(0));
            if (rows.integer(1) != 0) gone.push_back(keys.back());
        }
    }
    for (const std::string& key : gone) {
        Statement(database, "DELETE FROM meta WHERE key = ?").bind(key).run();
    }
    for (const std::string& key : keys) {
        use();
        labels_.key = key;
    }
    if (left() > 0) labels_ = {std::string(kLabelsOf), now_ms + kWorkspaceKeptMs, false};
}

void HistoryPruner::pruneEvents(Database& database) {
    if (!events_) {
        events_.emplace();
        Statement rows(database, "SELECT tenant, count(*) FROM events GROUP BY tenant");
        while (rows.step()) events_->emplace(rows.text(0), rows.integer(1));
    }
    std::int64_t beyond = -most_events_;
    for (const auto& [tenant, count] : *events_) beyond += count;
    while (beyond > 0 && left() > 0) {
        // Like the log in memory: removes the oldest of the tenant with most, while it has most.
        auto most = events_->begin();
        std::int64_t second = 0;
        for (auto each = std::next(most); each != events_->end(); ++each) {
            second = std::max(second, std::min(each->second, most->second));
            if (each->second > most->second) most = each;
        }
        std::vector<std::int64_t> ids;
        {
            Statement rows(database, "SELECT id FROM events WHERE tenant = ? ORDER BY id LIMIT ?");
            rows.bind(most->first).bind(std::min({beyond, left(), most->second - second + 1}));
            while (rows.step()) ids.push_back(rows.integer(0));
        }
        for (const std::int64_t id : ids) {
            use();
            Statement(database, "DELETE FROM events WHERE id = ?").bind(id).run();
        }
        const auto gone = static_cast<std::int64_t>(ids.size());
        most->second -= gone;
        beyond = gone == 0 ? 0 : beyond - gone;
    }
}

}  // namespace hearth::controller
