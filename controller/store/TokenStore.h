#pragma once

#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/Mutex.h"
#include "controller/contract/Tokens.h"
#include "controller/journal/Journal.h"
#include "controller/store/TokenHistory.h"

namespace hearth::controller {

/// A token in the configuration: named by its SHA-256, never in the clear.
struct ConfiguredToken {
    std::string name;
    std::string tenant;
    Role role = Role::User;
    std::string sha256;  ///< 64 hex digits
};

/// Tokens of the configuration and of the journal. Looked up by hash, so the time of a look-up
/// reveals nothing about a token. Thread-safe.
///
/// Revoking also works on a full disk: the id is then stored in a separate file (RevokedTokens),
/// and is removed from the database by the next start or change that the disk accepts.
///
/// An instance that ever had a token (`history`) serves no request without one, even after the
/// journal or the configuration lost them all, unless `open_loopback` is set.
class TokenStore final : public Tokens {
public:
    TokenStore(Journal& journal, TokenHistory& history,
               const std::vector<ConfiguredToken>& configured, const Clock& clock,
               bool open_loopback = false);

    /// How many tokens were added and removed.
    struct Change {
        std::size_t added = 0;
        std::size_t removed = 0;
    };
    /// Replaces the configuration's earlier tokens. A token that is missing now, or has another
    /// name, tenant or role, is refused when this returns, and its right has ended: streams and
    /// waits end as after remove(). Throws std::system_error if the existence of tokens cannot be
    /// stored; then nothing has changed.
    Change configure(const std::vector<ConfiguredToken>& configured);

    bool configured() const override;
    bool open() const override;
    std::optional<Authenticated> authenticate(std::string_view token) const override;
    std::optional<Authenticated> anonymous() const override;
    std::pair<TokenView, std::string> create(const Principal& who, const std::string& name,
                                             const std::string& tenant, Role role,
                                             std::optional<std::int64_t> ttl_seconds) override;
    std::vector<TokenView> list(const Principal& who) const override;
    void remove(const Principal& who, const std::string& id) override;

private:
    struct Entry {
        TokenView view;
        std::optional<std::int64_t> expires_ms;
        std::stop_source removed{};
    };

    static std::map<std::string, Entry> entriesOf(const std::vector<ConfiguredToken>& configured);
    bool live(const Entry& entry) const;
    /// Called before a token can be used: from then on every request needs one.
    void rememberTokens();
    bool openNow() const HEARTH_REQUIRES(mutex_);
    /// Throws if the caller is no longer an admin, after a wait for another caller's changes.
    void requireStillAdmin(const Principal& who) const HEARTH_REQUIRES(change_mutex_);
    /// Throws for an id that must not be removed.
    void checkRemovable(const std::string& id) const;
    void removeRows(const std::set<std::string>& ids);
    /// Removes tokens that were only noted as revoked from the database, if the disk accepts it
    /// now. Throws no database errors.
    void settleRevoked();

    Journal& journal_;
    TokenHistory& history_;
    const RevokedTokens revoked_;
    const Clock& clock_;
    const bool open_loopback_;
    Mutex change_mutex_;  ///< one change at a time, disk included
    mutable Mutex mutex_;
    std::map<std::string, Entry> by_hash_ HEARTH_GUARDED_BY(mutex_);
    std::stop_source closed_ HEARTH_GUARDED_BY(mutex_);  ///< ends the rights of open access
};

}  // namespace hearth::controller
