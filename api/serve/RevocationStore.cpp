#include "api/serve/RevocationStore.h"

namespace hearth::program {

using controller::Database;
using controller::Statement;

RevocationStore::RevocationStore(controller::Journal& journal, const Clock& clock)
    : journal_(journal), clock_(clock) {
    journal_.read([this](Database& database) {
        Statement row(database, "SELECT tenant, expiry_ms, session FROM revocations");
        const MutexLock lock(mutex_);
        while (row.step()) remember({row.text(0), row.integer(1), row.text(2)});
    });
}

bool RevocationStore::contains(std::string_view session) const {
    const MutexLock lock(mutex_);
    return sessions_.contains(session);
}

void RevocationStore::add(const mcp::Revocation& revocation) {
    const Row added{revocation.tenant, toUnixMillis(revocation.expiry), revocation.session};
    std::vector<Row> replaced;
    {
        const MutexLock lock(mutex_);
        if (sessions_.contains(added.session)) return;
        replaced = replacedBy(added.tenant);
    }
    journal_.writeNow([&](Database& database) {
        Statement(database,
                  "INSERT OR IGNORE INTO revocations (session, tenant, expiry_ms) VALUES (?, ?, ?)")
            .bind(added.session)
            .bind(added.tenant)
            .bind(added.expiry_ms)
            .run();
        for (const Row& row : replaced) {
            Statement(database, "DELETE FROM revocations WHERE session = ?")
                .bind(row.session)
                .run();
        }
    });
    const MutexLock lock(mutex_);
    for (const Row& row : replaced) forget(row);
    remember(added);
}

std::vector<RevocationStore::Row> RevocationStore::replacedBy(const std::string& tenant) const {
    const std::int64_t now_ms = toUnixMillis(clock_.wall());
    std::vector<Row> rows;
    for (const auto& [name, ends] : by_tenant_) {
        std::size_t left = ends.size() + (name == tenant ? 1 : 0);
        for (const auto& [expiry_ms, session] : ends) {
            if (expiry_ms >= now_ms && left <= kMost) break;
            rows.push_back({name, expiry_ms, session});
            --left;
        }
    }
    return rows;
}

void RevocationStore::remember(const Row& row) {
    if (!sessions_.insert(row.session).second) return;
    by_tenant_[row.tenant].emplace(row.expiry_ms, row.session);
}

void RevocationStore::forget(const Row& row) {
    if (sessions_.erase(row.session) == 0) return;
    const auto ends = by_tenant_.find(row.tenant);
    ends->second.erase({row.expiry_ms, row.session});
    if (ends->second.empty()) by_tenant_.erase(ends);
}

}  // namespace hearth::program
