#include "controller/gpus/GpuRecords.h"

#include <cstdint>
#include <exception>
#include <utility>

#include "controller/journal/Database.h"

namespace hearth::controller {

GpuRecords::GpuRecords(Journal& journal, metrics::Log& log, pool::GpuTenure tenure)
    : journal_(journal), log_(log), tenure_(std::move(tenure)) {}

GpuRecords::Contents GpuRecords::load() {
    Contents contents;
    journal_.read([&](Database& database) {
        Statement known(database, "SELECT uuid, clean_in, condemned FROM gpus");
        while (known.step()) {
            const bool clean = !tenure_.before.empty() && known.text(1) == tenure_.before;
            contents.devices.push_back({known.text(0), clean, known.text(2)});
        }
        Statement lease(database, "SELECT uuid, sandbox, pool, shared, parent FROM gpu_leases");
        while (lease.step()) {
            contents.leases.push_back({lease.text(0), lease.text(1), lease.text(2),
                                       lease.integer(3) != 0, lease.text(4)});
        }
    });
    renew();
    return contents;
}

void GpuRecords::renew() {
    try {
        journal_.writeNow([this](Database& database) {
            Statement(database,
                      "UPDATE gpus SET clean_in = CASE clean_in WHEN ? THEN ? ELSE '' END")
                .bind(tenure_.before)
                .bind(tenure_.now)
                .run();
        });
    } catch (const std::exception& e) {
        // The next start then trusts none of these devices, and scrubs them all.
        log_.warn("gpu.renewal_unwritten", {{"error", e.what()}});
    }
}

void GpuRecords::store(const std::vector<Lease>& leases) {
    journal_.writeNow([&](Database& database) {
        for (const Lease& lease : leases) {
            Statement(database,
                      "INSERT OR REPLACE INTO gpus (uuid, clean_in, condemned) VALUES "
                      "(?, '', '')")
                .bind(lease.uuid)
                .run();
            Statement(database,
                      "INSERT OR REPLACE INTO gpu_leases (uuid, sandbox, pool, shared, parent) "
                      "VALUES (?,?,?,?,?)")
                .bind(lease.uuid)
                .bind(lease.sandbox)
                .bind(lease.pool)
                .bind(static_cast<std::int64_t>(lease.shared))
                .bind(lease.parent)
                .run();
        }
    });
}

void GpuRecords::erase(const pool::SandboxId& sandbox) {
    bool erased = false;
    try {
        journal_.writeNow([&](Database& database) {
            Statement(database, "DELETE FROM gpu_leases WHERE sandbox = ?").bind(sandbox).run();
        });
        erased = true;
    } catch (const std::exception& e) {
        log_.warn("gpu.lease_kept", {{"sandbox", sandbox}, {"error", e.what()}});
    }
    const MutexLock lock(mutex_);
    if (erased) {
        unerased_.erase(sandbox);
    } else {
        unerased_.insert(sandbox);
    }
}

void GpuRecords::retryErasures() {
    std::set<pool::SandboxId> unerased;
    {
        const MutexLock lock(mutex_);
        unerased = unerased_;
    }
    for (const pool::SandboxId& sandbox : unerased) erase(sandbox);
}

void GpuRecords::storeClean(const std::string& uuid) {
    journal_.writeNow([&](Database& database) {
        Statement(database,
                  "INSERT OR REPLACE INTO gpus (uuid, clean_in, condemned) "
                  "VALUES (?,?,'')")
            .bind(uuid)
            .bind(tenure_.now)
            .run();
    });
}

void GpuRecords::storeCondemned(const std::string& uuid, const std::string& why) {
    try {
        journal_.writeNow([&](Database& database) {
            Statement(database,
                      "INSERT OR REPLACE INTO gpus (uuid, clean_in, condemned) VALUES (?,'',?)")
                .bind(uuid)
                .bind(why)
                .run();
        });
    } catch (const std::exception& e) {
        // It is not clean on disk: the next start scrubs it.
        log_.warn("gpu.condemned_unwritten", {{"gpu", uuid}, {"error", e.what()}});
    }
}

void GpuRecords::clearCondemned(const std::string& uuid) {
    journal_.writeNow([&](Database& database) {
        Statement(database,
                  "INSERT OR REPLACE INTO gpus (uuid, clean_in, condemned) VALUES (?,'','')")
            .bind(uuid)
            .run();
    });
}

void GpuRecords::distrust(const std::string& uuid) {
    try {
        journal_.writeNow([&](Database& database) {
            Statement(database, "DELETE FROM gpus WHERE uuid = ? AND condemned = ''")
                .bind(uuid)
                .run();
        });
    } catch (const std::exception& e) {
        log_.warn("gpu.distrust_unwritten", {{"gpu", uuid}, {"error", e.what()}});
    }
}

}  // namespace hearth::controller
