#include "controller/TokenStore.h"

#include <algorithm>
#include <array>

#include "base/Error.h"
#include "base/Ids.h"

namespace hearth::controller {
namespace {

constexpr std::array<std::pair<const char*, Role>, 3> kRoles{
    {{"user", Role::User}, {"operator", Role::Operator}, {"admin", Role::Admin}}};
constexpr std::size_t kTokenBytes = 32;

void requireAdmin(const Principal& who) {
    if (!who.atLeast(Role::Admin)) {
        throw Error(ErrorCode::Forbidden, "only an admin may see or change tokens");
    }
}

bool validTenant(const std::string& tenant) {
    return !tenant.empty() && tenant.size() <= 63 &&
           std::all_of(tenant.begin(), tenant.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
           });
}

}  // namespace

const char* roleName(Role role) noexcept {
    for (const auto& [name, value] : kRoles) {
        if (value == role) return name;
    }
    return "";
}

std::optional<Role> parseRole(std::string_view text) noexcept {
    for (const auto& [name, value] : kRoles) {
        if (text == name) return value;
    }
    return std::nullopt;
}

TokenStore::TokenStore(Journal& journal, const std::vector<ConfiguredToken>& configured,
                       const Clock& clock)
    : journal_(journal), clock_(clock) {
    journal_.read([this](Database& database) {
        Statement row(database,
                      "SELECT id, name, tenant, role, hash, created_ms, expires_ms FROM tokens");
        while (row.step()) {
            Entry entry;
            entry.view = {row.text(0),
                          row.text(1),
                          row.text(2),
                          static_cast<Role>(row.integer(3)),
                          formatRfc3339(fromUnixMillis(row.integer(5))),
                          std::nullopt,
                          "store"};
            if (!row.null(6)) {
                entry.expires_ms = row.integer(6);
                entry.view.expires_at = formatRfc3339(fromUnixMillis(row.integer(6)));
            }
            by_hash_[row.text(4)] = std::move(entry);
        }
    });
    for (const ConfiguredToken& token : configured) {
        by_hash_[token.sha256] = {{"tk_config_" + token.name, token.name, token.tenant, token.role,
                                   "", std::nullopt, "config"},
                                  std::nullopt};
    }
}

bool TokenStore::configured() const {
    const std::lock_guard lock(mutex_);
    return !by_hash_.empty();
}

std::optional<Principal> TokenStore::authenticate(std::string_view token) const {
    const std::string hash = toHex(sha256(token));
    const std::lock_guard lock(mutex_);
    const auto found = by_hash_.find(hash);
    if (found == by_hash_.end()) return std::nullopt;
    const Entry& entry = found->second;
    if (entry.expires_ms && *entry.expires_ms <= toUnixMillis(clock_.wall())) return std::nullopt;
    return Principal{entry.view.tenant, entry.view.role, entry.view.id};
}

std::pair<TokenView, std::string> TokenStore::create(const Principal& who, const std::string& name,
                                                     const std::string& tenant, Role role,
                                                     std::optional<std::int64_t> ttl_seconds) {
    requireAdmin(who);
    if (!validTenant(tenant)) {
        throw Error(ErrorCode::InvalidArgument, "not a tenant's name")
            .field("/tenant", "1 to 63 lower-case letters, digits or '-'");
    }
    std::string bytes(kTokenBytes, '\0');
    randomBytes(bytes.data(), bytes.size());
    const std::string token = "hearth_" + base64UrlEncode(bytes);
    const std::string hash = toHex(sha256(token));
    Entry entry;
    const WallTime now = clock_.wall();
    entry.view = {newId("tk_"), name, tenant, role, formatRfc3339(now), std::nullopt, "store"};
    if (ttl_seconds) {
        entry.expires_ms = toUnixMillis(now) + *ttl_seconds * 1000;
        entry.view.expires_at = formatRfc3339(fromUnixMillis(*entry.expires_ms));
    }
    journal_.writeNow([&](Database& database) {
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
    });
    const std::lock_guard lock(mutex_);
    by_hash_[hash] = entry;
    return {entry.view, token};
}

std::vector<TokenView> TokenStore::list(const Principal& who) const {
    requireAdmin(who);
    std::vector<TokenView> views;
    const std::lock_guard lock(mutex_);
    for (const auto& [hash, entry] : by_hash_) views.push_back(entry.view);
    return views;
}

void TokenStore::remove(const Principal& who, const std::string& id) {
    requireAdmin(who);
    {
        const std::lock_guard lock(mutex_);
        const auto found = std::find_if(by_hash_.begin(), by_hash_.end(),
                                        [&](const auto& e) { return e.second.view.id == id; });
        if (found == by_hash_.end()) throw Error(ErrorCode::NotFound, "no token " + id);
        if (found->second.view.source == "config") {
            throw Error(ErrorCode::Conflict, "this token stands in the configuration")
                .hint("remove it there and restart");
        }
        by_hash_.erase(found);
    }
    journal_.writeNow([&](Database& database) {
        Statement(database, "DELETE FROM tokens WHERE id = ?").bind(id).run();
    });
}

}  // namespace hearth::controller
