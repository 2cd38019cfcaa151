#include "controller/store/SpecStore.h"

#include <algorithm>

#include "base/Error.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kMostNamed = 20;

}  // namespace

namespace {

/// A damaged row makes its pool Degraded and does not stop the server: the pool keeps its name and
/// can be declared again.
Pool poolOf(const std::string& document, const std::string& name) {
    try {
        return storedPool(parseJson(document));
    } catch (const std::exception& e) {
        Pool pool;
        pool.name = name;
        pool.refused = std::string("its stored manifest is damaged: ") + e.what();
        return pool;
    }
}

}  // namespace

SpecStore::SpecStore(Journal& journal, const Clock& clock) : journal_(journal), clock_(clock) {
    journal_.read([this](Database& database) {
        Statement row(database,
                      "SELECT document, generation, resource_version, created_ms, name FROM pools "
                      "ORDER BY created_ms");
        const MutexLock lock(mutex_);
        while (row.step()) {
            Pool pool = poolOf(row.text(0), row.text(4));
            pool.generation = row.integer(1);
            pool.resource_version = row.integer(2);
            pool.created_unix_ms = row.integer(3);
            pools_.push_back(std::make_shared<const Pool>(std::move(pool)));
        }
    });
}

PoolPtr SpecStore::find(const std::string& name) const {
    const MutexLock lock(mutex_);
    for (const PoolPtr& pool : pools_) {
        if (pool->name == name) return pool;
    }
    return nullptr;
}

std::vector<PoolPtr> SpecStore::all() const {
    const MutexLock lock(mutex_);
    return pools_;
}

Error SpecStore::noPool(const std::string& name) const {
    std::string names;
    std::size_t count = 0;
    for (const PoolPtr& pool : all()) {
        if (pool->deleting || !pool->on_demand.empty()) continue;
        if (++count <= kMostNamed) names += (names.empty() ? "" : ", ") + pool->name;
    }
    if (count > kMostNamed) names += " and " + std::to_string(count - kMostNamed) + " more";
    Error error(ErrorCode::NotFound, "no pool " + name);
    error.hint(names.empty() ? "no pool is declared; an operator declares one with hearth apply -f"
                             : (count == 1 ? "the only pool is " : "the pools are ") + names);
    return error;
}

std::vector<PoolPtr>::iterator SpecStore::place(const std::string& name) {
    return std::find_if(pools_.begin(), pools_.end(),
                        [&](const PoolPtr& pool) { return pool->name == name; });
}

PoolPtr SpecStore::put(Pool pool, Mode mode, std::optional<std::int64_t> if_match, bool& created) {
    const MutexLock change(change_mutex_);
    PoolPtr before = find(pool.name);
    created = !before;
    if (before && (mode == Mode::Create || before->deleting)) {
        throw Error(ErrorCode::Conflict, before->deleting
                                             ? "pool " + pool.name + " is being deleted"
                                             : "pool " + pool.name + " exists")
            .hint(before->deleting
                      ? "try again when it has gone"
                      : "replace it instead: hearth apply -f, or PUT /v1/pools/" + pool.name);
    }
    if (!before && (mode == Mode::Replace || if_match)) {
        throw noPool(pool.name);
    }
    if (before && if_match && *if_match != before->resource_version) {
        throw Error(ErrorCode::PreconditionFailed, "pool " + pool.name +
                                                       " has changed: its resourceVersion is " +
                                                       std::to_string(before->resource_version))
            .hint("read it again and repeat the change");
    }
    if (before) {
        const bool same = before->spec == pool.spec && before->refused.empty();
        if (same && before->on_demand == pool.on_demand && before->object == pool.object) {
            return before;
        }
        pool.generation = before->generation + (same ? 0 : 1);
        pool.resource_version = before->resource_version + 1;
        pool.created_unix_ms = before->created_unix_ms;
    } else {
        // Never equal, because the oldest pool is the default one.
        const std::vector<PoolPtr> others = all();
        pool.created_unix_ms = toUnixMillis(clock_.wall());
        if (!others.empty()) {
            pool.created_unix_ms =
                std::max(pool.created_unix_ms, others.back()->created_unix_ms + 1);
        }
    }
    save(pool);
    auto kept = std::make_shared<const Pool>(std::move(pool));
    const MutexLock lock(mutex_);
    const auto at = place(kept->name);
    if (at == pools_.end()) {
        pools_.push_back(kept);
    } else {
        *at = kept;
    }
    return kept;
}

void SpecStore::markDeleting(const std::string& name) {
    const MutexLock change(change_mutex_);
    journal_.writeNow([&](Database& database) {
        Statement(database, "DELETE FROM pools WHERE name = ?").bind(name).run();
    });
    const MutexLock lock(mutex_);
    const auto found = place(name);
    if (found == pools_.end()) throw Error(ErrorCode::NotFound, "no pool " + name);
    Pool changed = **found;
    changed.deleting = true;
    ++changed.resource_version;
    *found = std::make_shared<const Pool>(std::move(changed));
}

void SpecStore::erase(const std::string& name) {
    const MutexLock lock(mutex_);
    std::erase_if(pools_, [&](const PoolPtr& pool) { return pool->name == name; });
}

void SpecStore::save(const Pool& pool) {
    journal_.writeNow([&](Database& database) {
        Statement(database,
                  "INSERT OR REPLACE INTO pools (name, document, generation, resource_version, "
                  "created_ms) VALUES (?,?,?,?,?)")
            .bind(pool.name)
            .bind(dumpJson(storedDocument(pool)))
            .bind(pool.generation)
            .bind(pool.resource_version)
            .bind(pool.created_unix_ms)
            .run();
    });
}

}  // namespace hearth::controller
