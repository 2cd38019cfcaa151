#pragma once

#include <map>
#include <string>

#include "controller/contract/Tokens.h"

namespace hearth::test {

class FakeTokens final : public controller::Tokens {
public:
    bool configured() const override { return !known.empty(); }
    bool open() const override { return known.empty() && !had_some; }
    std::optional<controller::Authenticated> authenticate(std::string_view token) const override {
        const auto at = known.find(std::string(token));
        if (at == known.end()) return std::nullopt;
        return controller::Authenticated{at->second, {withdrawal.get_token()}};
    }
    std::optional<controller::Authenticated> anonymous() const override {
        if (!open()) return std::nullopt;
        return controller::Authenticated{{"default", controller::Role::Admin, ""},
                                         {withdrawal.get_token()}};
    }
    std::pair<controller::TokenView, std::string> create(
        const controller::Principal&, const std::string& name, const std::string& tenant,
        controller::Role role, std::optional<std::int64_t> given_ttl) override {
        ttl = given_ttl;
        return {{"tk_1", name, tenant, role, "2026-11-21T03:04:05.678Z", std::nullopt,
                 controller::TokenSource::Store},
                "hearth_secret"};
    }
    std::vector<controller::TokenView> list(const controller::Principal&) const override {
        return {{"tk_1", "ci", "default", controller::Role::User, "2026-11-21T03:04:05.678Z",
                 "2026-11-21T03:04:05.678Z", controller::TokenSource::Config}};
    }
    void remove(const controller::Principal&, const std::string& id) override { removed = id; }

    std::stop_source withdrawal;  ///< withdraws every right
    bool had_some = false;        ///< there were tokens, and they were lost
    std::map<std::string, controller::Principal> known;
    std::optional<std::int64_t> ttl;
    std::string removed;
};

}  // namespace hearth::test
