#pragma once

#include <string>

#include "base/Ids.h"
#include "controller/contract/Principal.h"

namespace hearth::controller {

/// Ids of the things that a request with an idempotency key makes: the same for the same key, even
/// after a crash, and not guessable without the instance's key. An empty key gives a new id. Pure.
class KeyedIds {
public:
    /// `secret_key`: the instance's 32 random bytes; they outlive this object.
    explicit KeyedIds(const std::string& secret_key) : secret_key_(secret_key) {}

    std::string claim(const Principal& who, const std::string& key, bool one_shot) const {
        if (key.empty()) return newId("cl_");
        return derived("cl_", {one_shot ? "oneshot" : "workspace", who.tenant, key});
    }
    /// The same for one workspace in a claim of several.
    std::string claimOf(const Principal& who, const std::string& key, std::size_t index) const {
        if (key.empty()) return newId("cl_");
        return derived("cl_", {"one of several", who.tenant, key, std::to_string(index)});
    }
    std::string workspace(const std::string& claim_id) const {
        return derived("ws_", {"workspace of claim", claim_id});
    }
    std::string execution(const Principal& who, const std::string& workspace,
                          const std::string& key) const {
        if (key.empty()) return newId("ex_");
        return derived("ex_", {"execution", who.tenant, workspace, key});
    }
    std::string oneShot(const Principal& who, const std::string& key) const {
        if (key.empty()) return newId("ex_");
        return derived("ex_", {"one shot", who.tenant, key});
    }
    std::string context(const Principal& who, const std::string& workspace,
                        const std::string& key) const {
        if (key.empty()) return newId("cx_");
        return derived("cx_", {"context", who.tenant, workspace, key});
    }
    /// A name identifies one context of a language in a workspace.
    std::string namedContext(const Principal& who, const std::string& workspace,
                             const std::string& language, const std::string& name) const {
        return derived("cx_", {"context name", who.tenant, workspace, language, name});
    }

private:
    std::string derived(std::string_view prefix,
                        std::initializer_list<std::string_view> parts) const {
        return derivedId(prefix, secret_key_, parts);
    }

    const std::string& secret_key_;
};

}  // namespace hearth::controller
