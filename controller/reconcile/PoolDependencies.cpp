#include "controller/reconcile/PoolDependencies.h"

#include <algorithm>
#include <set>

#include "controller/packages/PackageSpec.h"

namespace hearth::controller {
namespace {

void drop(PoolStatus& status, ConditionType type) {
    std::erase_if(status.conditions, [type](const PoolCondition& c) { return c.type == type; });
}

/// Returns the message of a condition that is false; "" if it is true or absent.
std::string lacking(const PoolStatus& status, ConditionType type) {
    for (const PoolCondition& each : status.conditions) {
        if (each.type == type && !each.status) return each.message;
    }
    return "";
}

void append(std::string& text, const std::string& more) {
    text += (text.empty() ? "" : "; ") + more;
}

}  // namespace

void setCondition(PoolStatus& status, const Clock& clock, ConditionType type, bool value,
                  std::string reason, std::string message) {
    for (PoolCondition& each : status.conditions) {
        if (each.type != type) continue;
        if (each.status != value) each.since = formatRfc3339(clock.wall());
        each.status = value;
        each.reason = std::move(reason);
        each.message = std::move(message);
        return;
    }
    status.conditions.push_back(
        {type, value, std::move(reason), std::move(message), formatRfc3339(clock.wall())});
}

void PoolDependencies::tell(const PoolSpec& spec, PoolStatus& status) const {
    tellMirrors(spec, status);
    tellSecrets(spec, status);
}

void PoolDependencies::tellMirrors(const PoolSpec& spec, PoolStatus& status) const {
    if (spec.network != egress::NetworkMode::Mirror) return drop(status, ConditionType::Mirrored);
    const std::vector<egress::IndexKind> mirrored = gateway_.mirrored();
    std::string missing;
    using enum egress::IndexKind;
    for (const egress::IndexKind kind : {Pypi, Npm}) {
        if (std::find(mirrored.begin(), mirrored.end(), kind) == mirrored.end()) {
            append(missing, notMirrored(kind));
        }
    }
    std::string failing;
    for (const auto& [kind, why] : gateway_.failingMirrors()) {
        append(failing, egress::kIndexKinds.of(kind));
        failing.append(": ").append(why);
    }
    if (!failing.empty()) {
        return setCondition(status, clock_, ConditionType::Mirrored, false, "IndexFails",
                            std::move(failing));
    }
    // Most pools need only one of them, so one is enough; the message still names the others.
    setCondition(status, clock_, ConditionType::Mirrored, !mirrored.empty(),
                 mirrored.empty() ? "NoIndex" : "Mirrored", std::move(missing));
}

void PoolDependencies::tellSecrets(const PoolSpec& spec, PoolStatus& status) const {
    if (spec.network_credentials.empty()) return drop(status, ConditionType::Credentials);
    std::string missing;
    std::set<std::string> seen;
    for (const egress::Credential& credential : spec.network_credentials) {
        if (!seen.insert(credential.secret).second) continue;
        const std::string lack = gateway_.keyrings().lackOf(credential);
        if (!lack.empty()) append(missing, "secret " + credential.secret + ": " + lack);
    }
    const bool whole = missing.empty();
    setCondition(status, clock_, ConditionType::Credentials, whole,
                 whole ? "Complete" : "SecretMissing", std::move(missing));
}

void PoolDependencies::logNews(const std::string& pool, const PoolStatus& before,
                               const PoolStatus& now) const {
    const auto news = [&](ConditionType type, const char* event) {
        const std::string why = lacking(now, type);
        if (why.empty() || why == lacking(before, type)) return;
        log_.warn(event, {{"pool", pool}, {"why", why}});
    };
    news(ConditionType::Mirrored, "pool.no_mirror");
    news(ConditionType::Credentials, "pool.no_secret");
}

}  // namespace hearth::controller
