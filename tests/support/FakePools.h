#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/Error.h"
#include "controller/Services.h"
#include "tests/support/FakeIds.h"

namespace hearth::test {

inline controller::PoolView poolView(const std::string& name) {
    controller::PoolView view;
    controller::Pool pool;
    pool.name = name;
    pool.spec.image = "python";
    pool.spec.warm_min = 2;
    pool.spec.prewarm_packages = {"numpy==2.1"};
    pool.resource_version = 7;
    view.pool = std::make_shared<const controller::Pool>(std::move(pool));
    view.status.ready = 2;
    view.status.packages = {"sha256:1", "x.lock", {{"numpy", "2.1"}}};
    view.status.conditions.push_back(
        {controller::ConditionType::Ready, true, "AllWarm", "2 of 2 ready", kTime});
    return view;
}

/// A pool "python" that is always ready, and more pools like it.
class FakePools final : public controller::Pools {
public:
    std::vector<controller::PoolView> list(const Principal&) override {
        std::vector<controller::PoolView> views;
        views.reserve(names.size());
        for (const std::string& name : names) views.push_back(view(name));
        return views;
    }
    controller::PoolView get(const Principal&, const std::string& name) override {
        if (std::ranges::find(names, name) == names.end()) {
            throw Error(ErrorCode::NotFound, "no such pool");
        }
        return view(name);
    }
    controller::PoolView create(const Principal&, const Json& given) override {
        document = given;
        return poolView(given.at("metadata").at("name").get<std::string>());
    }
    controller::PoolView put(const Principal&, const std::string& name, const Json& given,
                             std::optional<std::int64_t> version, bool& created) override {
        document = given;
        if_match = version;
        created = name != "python";
        if (version && *version != 7) throw Error(ErrorCode::PreconditionFailed, "changed");
        return poolView(name);
    }
    controller::PoolView patch(const Principal&, const std::string& name, const Json& merge,
                               std::optional<std::int64_t> version) override {
        document = merge;
        if_match = version;
        return poolView(name);
    }
    void remove(const Principal&, const std::string&) override {}
    std::uint32_t drain(const Principal&, const std::string&) override { return 3; }
    std::uint32_t drainAll(const Principal&) override { return 5; }
    void undrainAll(const Principal&) override {}
    std::vector<controller::SandboxView> sandboxes(const Principal& who,
                                                   const std::optional<std::string>&) override {
        return {sandbox(who, kSandbox)};
    }
    controller::SandboxView sandbox(const Principal&, const std::string& id) override {
        controller::SandboxView view;
        view.id = id;
        view.pool = "python";
        view.phase = "Claimed";
        view.workspace_id = kWorkspace;
        view.created_at = kTime;
        view.image = "python";
        view.runtime = "oci";
        return view;
    }
    void destroySandbox(const Principal&, const std::string&) override {}

    std::vector<std::string> names{"python"};
    std::map<std::string, controller::GpuSpec> gpus;  ///< of pools with GPUs
    Json document;
    std::optional<std::int64_t> if_match;

private:
    controller::PoolView view(const std::string& name) const {
        controller::PoolView view = poolView(name);
        const auto its = gpus.find(name);
        if (its == gpus.end()) return view;
        controller::Pool pool = *view.pool;
        pool.spec.gpu = its->second;
        view.pool = std::make_shared<const controller::Pool>(std::move(pool));
        return view;
    }
};

}  // namespace hearth::test
