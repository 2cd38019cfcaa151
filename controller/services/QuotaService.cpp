#include "controller/services/QuotaService.h"

#include <algorithm>
#include <array>

#include "base/Error.h"
#include "base/JsonText.h"
#include "controller/quota/QuotaDocument.h"

namespace hearth::controller {
namespace {

/// The most tenants that become labels of metrics, however many quotas an operator declares.
constexpr std::size_t kMostMeasured = 200;

void requireOperator(const Principal& who) {
    if (who.atLeast(Role::Operator)) return;
    throw Error(ErrorCode::Forbidden, "only an operator may do this")
        .hint("GET /v1/quota shows your own tenant's quota");
}

}  // namespace

QuotaService::QuotaService(QuotaLedger ledger, const SpecStore& specs, const Supply& supply,
                           const History& history)
    : ledger_(std::move(ledger)), specs_(specs), supply_(supply), history_(history) {
    history_.journal.read([this](Database& database) {
        Statement row(database, "SELECT tenant, document FROM quotas");
        while (row.step()) {
            const std::string tenant = row.text(0);
            try {
                ledger_.load(tenant, parseQuota(parseJson(row.text(1)), tenant));
            } catch (const std::exception& e) {
                history_.log.error("quota.damaged", {{"tenant", tenant},
                                                     {"error", e.what()},
                                                     {"hint", "set it again: hearth quota set"}});
            }
        }
    });
}

void QuotaService::declare(const std::map<std::string, QuotaSpec>& quotas) {
    const MutexLock lock(mutex_);
    for (const auto& [tenant, spec] : quotas) {
        ledger_.load(tenant, spec);
        configured_.insert(tenant);
    }
}

void QuotaService::requireGuaranteesFit(const std::string& tenant, const QuotaSpec& spec) const {
    Error error(ErrorCode::InvalidSpec, "the guarantees of tenant " + tenant + " do not fit");
    for (const auto& [name, floor] : spec.guaranteed) {
        const PoolPtr pool = specs_.find(name);
        if (!pool || pool->deleting) {
            error.field("/guaranteed/" + name, "there is no pool " + name);
            continue;
        }
        std::size_t others = 0;
        for (const auto& [other, its] : ledger_.floors(name)) {
            if (other != tenant) others += its;
        }
        if (others + floor <= pool->spec.max_members) continue;
        error.field("/guaranteed/" + name,
                    "is " + std::to_string(floor) + ", other tenants are guaranteed " +
                        std::to_string(others) + ", and the pool's limits.members is " +
                        std::to_string(pool->spec.max_members));
    }
    if (!error.fields().empty()) throw error;
}

QuotaView QuotaService::view(const std::string& tenant) const {
    QuotaView view;
    view.tenant = tenant;
    view.spec = ledger_.specOf(tenant);
    view.use = ledger_.useOf(tenant);
    const bool own = ledger_.declared(tenant).has_value();
    const bool any = own || ledger_.declared(kDefaultQuota).has_value();
    const MutexLock lock(mutex_);
    if (any) {
        view.source = !own                           ? QuotaSource::Default
                      : configured_.contains(tenant) ? QuotaSource::Config
                                                     : QuotaSource::Store;
    }
    return view;
}

QuotaView QuotaService::own(const Principal& who) const {
    return view(who.tenant);
}

std::vector<QuotaView> QuotaService::list(const Principal& who) const {
    requireOperator(who);
    std::vector<QuotaView> all;
    for (const std::string& tenant : ledger_.tenants()) all.push_back(view(tenant));
    return all;
}

QuotaView QuotaService::get(const Principal& who, const std::string& tenant) const {
    if (tenant != who.tenant) requireOperator(who);
    requireQuotaName(tenant);
    return view(tenant);
}

void QuotaService::requireOurs(const std::string& tenant) const {
    const MutexLock lock(mutex_);
    if (!configured_.contains(tenant)) return;
    throw Error(ErrorCode::Conflict,
                "the quota of tenant " + tenant + " is declared in the configuration")
        .hint("change it in the file of --quotas, and start the server again");
}

void QuotaService::change(const std::string& tenant, const std::optional<QuotaSpec>& spec) {
    const std::optional<QuotaSpec> before = ledger_.declared(tenant);
    ledger_.set(tenant, spec);
    try {
        history_.journal.writeSynced([&](Database& database) {
            if (!spec) {
                Statement(database, "DELETE FROM quotas WHERE tenant = ?").bind(tenant).run();
                return;
            }
            Statement(database, "INSERT OR REPLACE INTO quotas (tenant, document) VALUES (?,?)")
                .bind(tenant)
                .bind(dumpJson(quotaDocument(*spec)))
                .run();
        });
    } catch (...) {
        if (before) {
            ledger_.load(tenant, *before);
        } else {
            ledger_.forget(tenant);
        }
        throw;
    }
    // Its claims may be served sooner now.
    for (const PoolPtr& pool : specs_.all()) supply_.line.offer(pool->name);
}

void QuotaService::tell(const Principal& who, const char* type, const std::string& tenant) {
    history_.events.publish(
        {.type = type, .resource = tenant, .tenant = tenant, .trace_id = who.trace.trace_id});
    history_.log.info(type,
                      {{"quota", tenant}, {"tenant", who.tenant}, {"trace", who.trace.trace_id}});
    measure();
}

QuotaView QuotaService::put(const Principal& who, const std::string& tenant, const Json& document,
                            bool& created) {
    requireOperator(who);
    requireQuotaName(tenant);
    const QuotaSpec spec = parseQuota(document, tenant);
    {
        const MutexLock lock(change_mutex_);
        requireOurs(tenant);
        requireGuaranteesFit(tenant, spec);
        created = !ledger_.declared(tenant);
        change(tenant, spec);
    }
    tell(who, created ? "quota.declared" : "quota.changed", tenant);
    return view(tenant);
}

void QuotaService::remove(const Principal& who, const std::string& tenant) {
    requireOperator(who);
    requireQuotaName(tenant);
    {
        const MutexLock lock(change_mutex_);
        requireOurs(tenant);
        if (!ledger_.declared(tenant)) {
            throw Error(ErrorCode::NotFound, "tenant " + tenant + " has no quota of its own");
        }
        change(tenant, std::nullopt);
    }
    tell(who, "quota.removed", tenant);
}

void QuotaService::measure() const {
    std::vector<metrics::QuotaGauge> gauges;
    std::size_t measured = 0;
    for (const std::string& tenant : ledger_.tenants()) {
        const std::optional<QuotaSpec> spec = ledger_.declared(tenant);
        if (!spec || tenant == kDefaultQuota) continue;
        if (++measured > kMostMeasured) break;
        const QuotaUse use = ledger_.useOf(tenant);
        const auto add = [&](const char* resource, std::uint64_t used, double unit,
                             const std::optional<std::uint64_t>& limit) {
            gauges.push_back(
                {tenant, resource, static_cast<double>(used) / unit,
                 limit ? std::optional(static_cast<double>(*limit) / unit) : std::nullopt});
        };
        add("workspaces", use.workspaces, 1, spec->workspaces);
        add("cpu", use.milli_cpu, 1000, spec->milli_cpu);
        add("memory", use.memory_bytes, 1, spec->memory_bytes);
        add("gpus", use.gpus, 1, spec->gpus);
        add("executions", use.executions, 1, spec->executions);
    }
    history_.metrics.quotas(gauges);
}

}  // namespace hearth::controller
