#pragma once

#include <map>
#include <string>
#include <vector>

#include "controller/contract/Quotas.h"

namespace hearth::test {

/// Keeps what it is given, whoever asks; nothing is used of it.
class FakeQuotas final : public controller::Quotas {
public:
    std::vector<controller::QuotaView> list(const controller::Principal& who) override {
        std::vector<controller::QuotaView> views;
        for (const auto& [tenant, quota] : known) views.push_back(get(who, tenant));
        return views;
    }
    controller::QuotaView get(const controller::Principal&, const std::string& tenant) override {
        return {tenant, controller::QuotaSource::Store, known[tenant], {}};
    }
    controller::QuotaView put(const controller::Principal& who, const std::string& tenant,
                              const controller::TenantQuota& quota) override {
        known[tenant] = quota;
        return get(who, tenant);
    }
    void remove(const controller::Principal&, const std::string& tenant) override {
        known.erase(tenant);
    }

    std::map<std::string, controller::TenantQuota> known{{"ci", {.workspaces = 20}}};
};

}  // namespace hearth::test
