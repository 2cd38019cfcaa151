#include "controller/SpecStore.h"

#include <algorithm>

#include "base/Error.h"

namespace hearth::controller {

SpecStore::SpecStore(Journal& journal, const Clock& clock) : journal_(journal), clock_(clock) {
    journal_.read([this](Database& database) {
        Statement row(database,
                      "SELECT document, generation, resource_version, created_ms FROM pools");
        while (row.step()) {
            Pool pool = parsePool(parseJson(row.text(0)));
            pool.generation = row.integer(1);
            pool.resource_version = row.integer(2);
            pool.created_unix_ms = row.integer(3);
            pools_.emplace(pool.name, std::move(pool));
        }
    });
}

std::optional<Pool> SpecStore::find(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = pools_.find(name);
    if (found == pools_.end()) return std::nullopt;
    return found->second;
}

std::vector<Pool> SpecStore::all() const {
    std::vector<Pool> out;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [name, pool] : pools_) out.push_back(pool);
    }
    std::stable_sort(out.begin(), out.end(), [](const Pool& a, const Pool& b) {
        return a.created_unix_ms < b.created_unix_ms;
    });
    return out;
}

Pool SpecStore::put(Pool pool, Mode mode, std::optional<std::int64_t> if_match, bool& created) {
    const std::lock_guard change(change_mutex_);
    const std::optional<Pool> before = find(pool.name);
    created = !before;
    if (before && (mode == Mode::Create || before->deleting)) {
        throw Error(ErrorCode::Conflict, before->deleting
                                             ? "pool " + pool.name + " is being deleted"
                                             : "pool " + pool.name + " exists")
            .hint(before->deleting ? "try again when it has gone" : "replace it with PUT");
    }
    if (!before && (mode == Mode::Replace || if_match)) {
        throw Error(ErrorCode::NotFound, "no pool " + pool.name);
    }
    if (before && if_match && *if_match != before->resource_version) {
        throw Error(ErrorCode::PreconditionFailed, "pool " + pool.name +
                                                       " has changed: its resourceVersion is " +
                                                       std::to_string(before->resource_version))
            .hint("read it again and repeat the change");
    }
    if (before) {
        if (before->spec == pool.spec) return *before;
        pool.generation = before->generation + 1;
        pool.resource_version = before->resource_version + 1;
        pool.created_unix_ms = before->created_unix_ms;
    } else {
        // Never equal: the oldest pool is the default one.
        const std::vector<Pool> others = all();
        pool.created_unix_ms = toUnixMillis(clock_.wall());
        if (!others.empty()) {
            pool.created_unix_ms =
                std::max(pool.created_unix_ms, others.back().created_unix_ms + 1);
        }
    }
    save(pool);
    const std::lock_guard lock(mutex_);
    pools_[pool.name] = pool;
    return pool;
}

void SpecStore::markDeleting(const std::string& name) {
    const std::lock_guard change(change_mutex_);
    journal_.writeNow([&](Database& database) {
        Statement(database, "DELETE FROM pools WHERE name = ?").bind(name).run();
    });
    const std::lock_guard lock(mutex_);
    const auto found = pools_.find(name);
    if (found == pools_.end()) throw Error(ErrorCode::NotFound, "no pool " + name);
    found->second.deleting = true;
    ++found->second.resource_version;
}

void SpecStore::erase(const std::string& name) {
    const std::lock_guard lock(mutex_);
    pools_.erase(name);
}

void SpecStore::save(const Pool& pool) {
    journal_.writeNow([&](Database& database) {
        Statement(database,
                  "INSERT OR REPLACE INTO pools (name, document, generation, resource_version, "
                  "created_ms) VALUES (?,?,?,?,?)")
            .bind(pool.name)
            .bind(dumpJson(pool.document))
            .bind(pool.generation)
            .bind(pool.resource_version)
            .bind(pool.created_unix_ms)
            .run();
    });
}

}  // namespace hearth::controller
