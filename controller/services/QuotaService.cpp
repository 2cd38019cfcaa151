#include "controller/services/QuotaService.h"

#include "base/Error.h"

namespace hearth::controller {
namespace {

TenantQuota storedQuota(const std::string& document) {
    const Json json = parseJson(document);
    const Fields::Wrong wrong = [](const FieldError& error) {
        throw Error(ErrorCode::InvalidSpec, error.pointer + " " + error.reason);
    };
    Fields fields(json, "", wrong, Fields::Absent::Fine);
    return readQuota(fields);
}

bool seesAll(const Principal& who) {
    return who.atLeast(Role::Operator);
}

}  // namespace

QuotaService::QuotaService(QuotaLedger& ledger, Journal& journal, const History& history,
                           const std::map<std::string, TenantQuota>& configured)
    : ledger_(ledger), journal_(journal), history_(history) {
    journal_.read([&](Database& database) {
        Statement row(database, "SELECT tenant, document FROM quotas");
        while (row.step()) {
            const std::string tenant = row.text(0);
            try {
                ledger_.set(tenant, storedQuota(row.text(1)));
            } catch (const std::exception& e) {
                history_.log.error("quota.unreadable", {{"tenant", tenant}, {"error", e.what()}});
            }
        }
    });
    for (const auto& [tenant, quota] : configured) {
        ledger_.set(tenant, quota);
        configured_.insert(tenant);
    }
}

QuotaView QuotaService::view(const std::string& tenant) const {
    QuotaView view{tenant, QuotaSource::None, ledger_.of(tenant), ledger_.use(tenant)};
    if (configured_.contains(tenant)) {
        view.source = QuotaSource::Config;
    } else if (ledger_.own(tenant)) {
        view.source = QuotaSource::Store;
    } else if (ledger_.own(kEveryone)) {
        view.source = QuotaSource::Everyone;
    }
    return view;
}

std::vector<QuotaView> QuotaService::list(const Principal& who) {
    if (!seesAll(who)) return {view(who.tenant)};
    std::vector<QuotaView> views;
    for (const std::string& tenant : ledger_.tenants()) views.push_back(view(tenant));
    return views;
}

QuotaView QuotaService::get(const Principal& who, const std::string& tenant) {
    if (!seesAll(who) && tenant != who.tenant) {
        throw Error(ErrorCode::NotFound, "no quota of tenant " + tenant)
            .hint("a user sees the quota of tenant " + who.tenant + " alone");
    }
    return view(tenant);
}

void QuotaService::requireChangeable(const Principal& who, const std::string& tenant) const {
    if (!who.atLeast(Role::Admin)) {
        throw Error(ErrorCode::Forbidden, "only an admin may change quotas");
    }
    if (configured_.contains(tenant)) {
        throw Error(ErrorCode::Conflict,
                    "the quota of tenant " + tenant + " stands in the server's configuration")
            .hint("change it there, and restart the server");
    }
}

QuotaView QuotaService::put(const Principal& who, const std::string& tenant,
                            const TenantQuota& quota) {
    requireChangeable(who, tenant);
    const MutexLock change(change_mutex_);
    const std::optional<TenantQuota> before = ledger_.own(tenant);
    // In force first, so that what is checked cannot change before it is; taken back if the disk
    // refuses.
    ledger_.set(tenant, quota);
    try {
        journal_.writeNow([&](Database& database) {
            Statement(database,
                      "INSERT INTO quotas (tenant, document) VALUES (?, ?) ON CONFLICT (tenant) DO "
                      "UPDATE SET document = excluded.document")
                .bind(tenant)
                .bind(dumpJson(quotaJson(quota)))
                .run();
        });
    } catch (...) {
        ledger_.restore(tenant, before);
        throw;
    }
    tell(who, tenant, "set");
    return view(tenant);
}

void QuotaService::remove(const Principal& who, const std::string& tenant) {
    requireChangeable(who, tenant);
    const MutexLock change(change_mutex_);
    if (!ledger_.own(tenant)) {
        throw Error(ErrorCode::NotFound, "tenant " + tenant + " has no quota of its own");
    }
    journal_.writeNow([&](Database& database) {
        Statement(database, "DELETE FROM quotas WHERE tenant = ?").bind(tenant).run();
    });
    ledger_.restore(tenant, std::nullopt);
    tell(who, tenant, "removed");
}

void QuotaService::tell(const Principal& who, const std::string& tenant, const char* what) const {
    history_.events.publish({.type = "quota.changed",
                             .resource = tenant,
                             .tenant = tenant == kEveryone ? "" : tenant,
                             .reason = what,
                             .message = "the quota of tenant " + tenant + " was " + what,
                             .trace_id = who.trace_id});
    history_.log.info("quota.changed",
                      {{"tenant", tenant}, {"what", what}, {"trace", who.trace_id}});
}

}  // namespace hearth::controller
