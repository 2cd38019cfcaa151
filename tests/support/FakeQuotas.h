#pragma once

#include <map>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "controller/contract/Quotas.h"

namespace hearth::test {

/// Quotas in memory; their documents are kept but have no effect.
class FakeQuotas final : public controller::Quotas {
public:
    controller::QuotaView own(const controller::Principal& who) const override {
        return viewOf(who.tenant);
    }
    std::vector<controller::QuotaView> list(const controller::Principal&) const override {
        std::vector<controller::QuotaView> all;
        for (const auto& [tenant, document] : stored) all.push_back(viewOf(tenant));
        return all;
    }
    controller::QuotaView get(const controller::Principal&,
                              const std::string& tenant) const override {
        return viewOf(tenant);
    }
    controller::QuotaView put(const controller::Principal&, const std::string& tenant,
                              const Json& document, bool& created) override {
        created = stored.insert_or_assign(tenant, document).second;
        return viewOf(tenant);
    }
    void remove(const controller::Principal&, const std::string& tenant) override {
        if (stored.erase(tenant) == 0) throw Error(ErrorCode::NotFound, "no quota");
    }

    /// By tenant; "shop" has one.
    std::map<std::string, Json> stored{{"shop", nullptr}};

private:
    controller::QuotaView viewOf(const std::string& tenant) const {
        controller::QuotaView view;
        view.tenant = tenant;
        view.spec.workspaces = 10;
        view.use.workspaces = 2;
        view.source = stored.contains(tenant) ? controller::QuotaSource::Store
                                              : controller::QuotaSource::None;
        return view;
    }
};

}  // namespace hearth::test
