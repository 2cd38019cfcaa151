#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "controller/Journal.h"
#include "controller/Tokens.h"

namespace hearth::controller {

/// A token that the configuration names: by its SHA-256, never in the clear.
struct ConfiguredToken {
    std::string name;
    std::string tenant;
    Role role = Role::User;
    std::string sha256;  ///< 64 hex digits
};

/// Tokens of the configuration and of the journal. Looked up by hash, so the time of a look-up
/// tells nothing about a token. Thread-safe.
class TokenStore final : public Tokens {
public:
    TokenStore(Journal& journal, const std::vector<ConfiguredToken>& configured,
               const Clock& clock);

    bool configured() const override;
    std::optional<Principal> authenticate(std::string_view token) const override;
    std::pair<TokenView, std::string> create(const Principal& who, const std::string& name,
                                             const std::string& tenant, Role role,
                                             std::optional<std::int64_t> ttl_seconds) override;
    std::vector<TokenView> list(const Principal& who) const override;
    void remove(const Principal& who, const std::string& id) override;

private:
    struct Entry {
        TokenView view;
        std::optional<std::int64_t> expires_ms;
    };

    Journal& journal_;
    const Clock& clock_;
    mutable std::mutex mutex_;
    std::map<std::string, Entry> by_hash_;  // guarded by mutex_
};

const char* roleName(Role role) noexcept;
std::optional<Role> parseRole(std::string_view text) noexcept;

}  // namespace hearth::controller
