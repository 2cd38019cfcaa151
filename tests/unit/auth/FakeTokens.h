#pragma once

#include <map>
#include <string>

#include "controller/Tokens.h"

namespace hearth::test {

class FakeTokens final : public controller::Tokens {
public:
    bool configured() const override { return !known.empty(); }
    std::optional<controller::Principal> authenticate(std::string_view token) const override {
        const auto at = known.find(std::string(token));
        if (at == known.end()) return std::nullopt;
        return at->second;
    }
    std::pair<controller::TokenView, std::string> create(
        const controller::Principal&, const std::string& name, const std::string& tenant,
        controller::Role role, std::optional<std::int64_t> given_ttl) override {
        ttl = given_ttl;
        return {{"tk_1", name, tenant, role, "2026-11-21T03:04:05.678Z", std::nullopt, "store"},
                "hearth_secret"};
    }
    std::vector<controller::TokenView> list(const controller::Principal&) const override {
        return {{"tk_1", "ci", "default", controller::Role::User, "2026-11-21T03:04:05.678Z",
                 "2026-11-21T03:04:05.678Z", "config"}};
    }
    void remove(const controller::Principal&, const std::string& id) override { removed = id; }

    std::map<std::string, controller::Principal> known;
    std::optional<std::int64_t> ttl;
    std::string removed;
};

}  // namespace hearth::test
