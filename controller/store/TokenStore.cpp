#include "controller/store/TokenStore.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/Digest.h"
#include "base/Error.h"
#include "base/Ids.h"
#include "base/Units.h"
#include "controller/contract/TenantName.h"

namespace hearth::controller {
namespace {

constexpr const char* kHadTokens = "hadTokens";
constexpr const char* kYes = "yes";

constexpr std::size_t kTokenBytes = 32;

void requireAdmin(const Principal& who) {
    if (!who.atLeast(Role::Admin)) {
        throw Error(ErrorCode::Forbidden, "only an admin may see or change tokens");
    }
}

}  // namespace

TokenStore::TokenStore(Journal& journal, TokenHistory& history,
                       const std::vector<ConfiguredToken>& configured, const Clock& clock,
                       bool open_loopback)
    : journal_(journal),
      history_(history),
      revoked_(history.revokedPath()),
      clock_(clock),
      open_loopback_(open_loopback) {
    const std::set<std::string> revoked = revoked_.ids();
    journal_.read([&](Database& database) {
        Statement row(database,
                      "SELECT id, name, tenant, role, hash, created_ms, expires_ms FROM tokens");
        const MutexLock lock(mutex_);
        while (row.step()) {
            if (revoked.contains(row.text(0))) continue;
            Entry entry;
            entry.view = {row.text(0),
                          row.text(1),
                          row.text(2),
                          static_cast<Role>(row.integer(3)),
                          formatUnixMillis(row.integer(5)),
                          std::nullopt,
                          TokenSource::Store};
            if (!row.null(6)) {
                entry.expires_ms = row.integer(6);
                entry.view.expires_at = formatUnixMillis(row.integer(6));
            }
            by_hash_[row.text(4)] = std::move(entry);
        }
    });
    for (auto& [hash, entry] : entriesOf(configured)) by_hash_[hash] = std::move(entry);
    settleRevoked();
    // The database stores it too, in case the history's own file is lost.
    if (by_hash_.empty() && journal_.meta(kHadTokens) != kYes) {
        history_.settle();
        return;
    }
    rememberTokens();
}

std::map<std::string, TokenStore::Entry> TokenStore::entriesOf(
    const std::vector<ConfiguredToken>& configured) {
    std::map<std::string, Entry> entries;
    for (const ConfiguredToken& token : configured) {
        entries[token.sha256] = {{"tk_config_" + token.name, token.name, token.tenant, token.role,
                                  "", std::nullopt, TokenSource::Config},
                                 std::nullopt,
                                 {}};
    }
    return entries;
}

void TokenStore::rememberTokens() {
    history_.remember();
    if (journal_.meta(kHadTokens) == kYes) return;
    try {
        journal_.setMeta(kHadTokens, kYes);
    } catch (const std::exception&) {
        return;  // a full disk must not prevent a start; the next start tries again
    }
}

TokenStore::Change TokenStore::configure(const std::vector<ConfiguredToken>& configured) {
    std::map<std::string, Entry> fresh = entriesOf(configured);
    const auto same = [](const TokenView& a, const TokenView& b) {
        return a.id == b.id && a.tenant == b.tenant && a.role == b.role;
    };
    Change change;
    std::vector<std::stop_source> ended;
    UniqueMutexLock changing(change_mutex_);
    if (!fresh.empty()) rememberTokens();
    {
        const MutexLock lock(mutex_);
        for (auto it = by_hash_.begin(); it != by_hash_.end();) {
            const auto kept = fresh.find(it->first);
            const bool stays = kept != fresh.end() && same(kept->second.view, it->second.view);
            if (stays) fresh.erase(kept);  // its holder's streams continue
            if (stays || it->second.view.source != TokenSource::Config) {
                ++it;
                continue;
            }
            ended.push_back(it->second.removed);
            it = by_hash_.erase(it);
            ++change.removed;
        }
        if (!fresh.empty()) ended.push_back(std::exchange(closed_, std::stop_source()));
        for (auto& [hash, entry] : fresh) by_hash_[hash] = std::move(entry);
        change.added = fresh.size();
    }
    changing.unlock();
    for (std::stop_source& each : ended) each.request_stop();
    return change;
}

bool TokenStore::configured() const {
    const MutexLock lock(mutex_);
    return !by_hash_.empty();
}

bool TokenStore::open() const {
    const MutexLock lock(mutex_);
    return openNow();
}

bool TokenStore::openNow() const {
    return by_hash_.empty() && (open_loopback_ || !history_.had());
}

std::optional<Authenticated> TokenStore::anonymous() const {
    const MutexLock lock(mutex_);
    if (!openNow()) return std::nullopt;
    return Authenticated{{"default", Role::Admin, ""}, {closed_.get_token()}};
}

bool TokenStore::live(const Entry& entry) const {
    return !entry.expires_ms || *entry.expires_ms > toUnixMillis(clock_.wall());
}

std::optional<Authenticated> TokenStore::authenticate(std::string_view token) const {
    const std::string hash = toHex(sha256(token));
    const MutexLock lock(mutex_);
    const auto found = by_hash_.find(hash);
    if (found == by_hash_.end()) return std::nullopt;
    const Entry& entry = found->second;
    if (!live(entry)) return std::nullopt;
    Authenticated known{{entry.view.tenant, entry.view.role, entry.view.id},
                        {entry.removed.get_token()}};
    if (entry.expires_ms) known.right.expires = fromUnixMillis(*entry.expires_ms);
    return known;
}

std::pair<TokenView, std::string> TokenStore::create(const Principal& who, const std::string& name,
                                                     const std::string& tenant, Role role,
                                                     std::optional<std::int64_t> ttl_seconds) {
    requireAdmin(who);
    if (!isTenantName(tenant)) {
        throw Error(ErrorCode::InvalidArgument, "not a tenant's name")
            .field("/tenant", kTenantNameRule);
    }
    std::string bytes(kTokenBytes, '\0');
    randomBytes(bytes.data(), bytes.size());
    const std::string token = "hearth_" + base64UrlEncode(bytes);
    const std::string hash = toHex(sha256(token));
    Entry entry;
    const WallTime now = clock_.wall();
    entry.view = {newId("tk_"),      name, tenant, role, formatRfc3339(now), std::nullopt,
                  TokenSource::Store};
    if (ttl_seconds) {
        entry.expires_ms = toUnixMillis(now) + *ttl_seconds * 1000;
        entry.view.expires_at = formatUnixMillis(*entry.expires_ms);
    }
    UniqueMutexLock changing(change_mutex_);
    requireStillAdmin(who);
    // Must come first: if the database loses the token, the instance must not be open. If the token
    // then cannot be written, the instance is closed, and its refusals say how to make one.
    history_.remember();
    journal_.writeSynced([&](Database& database) {
        Statement(database,
                  "INSERT INTO tokens (id, name, tenant, role, hash, created_ms, expires_ms) "
                  "VALUES (?,?,?,?,?,?,?)")
            .bind(entry.view.id)
            .bind(name)
            .bind(tenant)
            .bind(static_cast<std::int64_t>(role))
            .bind(hash)
            .bind(toUnixMillis(now))
            .bind(entry.expires_ms)
            .run();
        Journal::putMeta(database, kHadTokens, kYes);
    });
    settleRevoked();
    std::stop_source closed;
    {
        const MutexLock lock(mutex_);
        by_hash_[hash] = entry;
        // Renewed, because --open-loopback opens the instance again when its last token is removed.
        closed = std::exchange(closed_, std::stop_source());
    }
    changing.unlock();
    closed.request_stop();
    return {entry.view, token};
}

void TokenStore::requireStillAdmin(const Principal& who) const {
    // An issuer's token cannot be revoked: its right was checked when the request came.
    if (who.token_id == kOwnerOfState || who.token_id.starts_with(kIssuedPrefix)) return;
    const MutexLock lock(mutex_);
    const bool admin = who.token_id.empty()
                           ? openNow()
                           : std::any_of(by_hash_.begin(), by_hash_.end(), [&](const auto& each) {
                                 const Entry& entry = each.second;
                                 return entry.view.id == who.token_id &&
                                        entry.view.role == Role::Admin && live(entry);
                             });
    if (!admin) {
        throw Error(ErrorCode::Unauthenticated,
                    "the caller lost the role admin before this was done")
            .hint("use an admin's token that is still valid");
    }
}

std::vector<TokenView> TokenStore::list(const Principal& who) const {
    requireAdmin(who);
    std::vector<TokenView> views;
    const MutexLock lock(mutex_);
    for (const auto& [hash, entry] : by_hash_) views.push_back(entry.view);
    return views;
}

void TokenStore::checkRemovable(const std::string& id) const {
    const MutexLock lock(mutex_);
    const auto found = std::find_if(by_hash_.begin(), by_hash_.end(),
                                    [&](const auto& e) { return e.second.view.id == id; });
    if (found == by_hash_.end()) throw Error(ErrorCode::NotFound, "no token " + id);
    if (found->second.view.source == TokenSource::Config) {
        throw Error(ErrorCode::Conflict, "this token is declared in the configuration")
            .hint("remove it from the file of --config: it is refused within seconds");
    }
    const auto admin = [this](const Entry& e) { return e.view.role == Role::Admin && live(e); };
    // A token that expires is no replacement for one that does not.
    const bool lasts = !found->second.expires_ms;
    const auto another = [&](const auto& e) {
        return e.second.view.id != id && admin(e.second) && (!lasts || !e.second.expires_ms);
    };
    if (admin(found->second) && std::none_of(by_hash_.begin(), by_hash_.end(), another)) {
        throw Error(ErrorCode::Conflict, "this is the last token of an admin")
            .hint("make another one first: hearth token create --role admin");
    }
}

void TokenStore::removeRows(const std::set<std::string>& ids) {
    journal_.writeSynced([&](Database& database) {
        for (const std::string& id : ids) {
            Statement(database, "DELETE FROM tokens WHERE id = ?").bind(id).run();
        }
    });
    journal_.checkpoint();
}

void TokenStore::settleRevoked() {
    revoked_.prepare();
    const std::set<std::string> ids = revoked_.ids();
    if (ids.empty()) return;
    try {
        removeRows(ids);
    } catch (const std::exception&) {
        return;  // they stay noted; the next change or start tries again
    }
    revoked_.clear();
}

void TokenStore::remove(const Principal& who, const std::string& id) {
    requireAdmin(who);
    UniqueMutexLock changing(change_mutex_);
    requireStillAdmin(who);
    checkRemovable(id);
    // On disk first: a token that is reported as revoked must not return with the next start.
    try {
        removeRows({id});
        settleRevoked();
    } catch (const Error& e) {
        if (e.code() != ErrorCode::DiskFull || !revoked_.add(id)) throw;
        journal_.log().warn("token.revoked_beside",
                            {{"token", id},
                             {"error", e.what()},
                             {"hint", "it stays revoked; free space on the disk of the state"}});
    }
    std::stop_source removed(std::nostopstate);
    {
        const MutexLock lock(mutex_);
        const auto found = std::find_if(by_hash_.begin(), by_hash_.end(),
                                        [&](const auto& e) { return e.second.view.id == id; });
        removed = found->second.removed;
        by_hash_.erase(found);
    }
    changing.unlock();
    removed.request_stop();
}

}  // namespace hearth::controller
