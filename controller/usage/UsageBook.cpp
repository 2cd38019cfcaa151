#include "controller/usage/UsageBook.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>

namespace hearth::controller {
namespace {

constexpr std::int64_t kHourMs = 3600LL * 1000;
constexpr const char* kUntil = "usage.until";
/// The largest number that a row holds: sums stop there.
constexpr std::int64_t kLargestSum = INT64_MAX;
constexpr std::size_t kRowBytes = 128;
constexpr auto kReadYourWrites = std::chrono::seconds(1);

std::int64_t hourOf(WallTime time) {
    return toUnixMillis(time) / kHourMs;
}

void put(Database& database, std::int64_t hour, const std::string& tenant, const std::string& pool,
         const UsageSums& sums) {
    Statement(database,
              "INSERT INTO usage (hour, tenant, pool, claims, sandbox_ms, cpu_us, gpu_ms, "
              "memory_kib_secs, egress_bytes) VALUES (?,?,?,?,?,?,?,?,?) "
              "ON CONFLICT (tenant, hour, pool) DO UPDATE SET "
              "claims = min(claims + excluded.claims, ?10), "
              "sandbox_ms = min(sandbox_ms + excluded.sandbox_ms, ?10), "
              "cpu_us = min(cpu_us + excluded.cpu_us, ?10), "
              "gpu_ms = min(gpu_ms + excluded.gpu_ms, ?10), "
              "memory_kib_secs = min(memory_kib_secs + excluded.memory_kib_secs, ?10), "
              "egress_bytes = min(egress_bytes + excluded.egress_bytes, ?10)")
        .bind(hour)
        .bind(tenant)
        .bind(pool)
        .bind(static_cast<std::int64_t>(sums.claims))
        .bind(static_cast<std::int64_t>(sums.sandbox_ms))
        .bind(static_cast<std::int64_t>(sums.cpu_us))
        .bind(static_cast<std::int64_t>(sums.gpu_ms))
        .bind(static_cast<std::int64_t>(sums.memory_kib_secs))
        .bind(static_cast<std::int64_t>(sums.egress_bytes))
        .bind(kLargestSum)
        .run();
}

std::uint64_t unsignedAt(const Statement& row, int column) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, row.integer(column)));
}

void grow(std::uint64_t& sum, std::uint64_t by) {
    constexpr auto kTop = static_cast<std::uint64_t>(kLargestSum);
    sum = by > kTop || sum > kTop - by ? kTop : sum + by;
}

}  // namespace

UsageSums& UsageSums::operator+=(const UsageSums& more) {
    grow(claims, more.claims);
    grow(sandbox_ms, more.sandbox_ms);
    grow(cpu_us, more.cpu_us);
    grow(gpu_ms, more.gpu_ms);
    grow(memory_kib_secs, more.memory_kib_secs);
    grow(egress_bytes, more.egress_bytes);
    return *this;
}

void UsageBook::add(const std::string& tenant, const std::string& pool, const UsageSums& sums) {
    const MutexLock lock(mutex_);
    pending_[{tenant, pool}] += sums;
}

std::map<UsageBook::Key, UsageSums> UsageBook::write(WallTime now) {
    const std::int64_t hour = hourOf(now);
    std::map<Key, UsageSums> added;
    bool prune = false;
    {
        const MutexLock lock(mutex_);
        // An idle server writes nothing.
        if (pending_.empty()) return {};
        added.swap(pending_);
        prune = pruned_hour_ != hour;
        pruned_hour_ = hour;
    }
    journal_.write(
        [added, now, hour, prune](Database& database) {
            for (const auto& [of, sums] : added) put(database, hour, of.first, of.second, sums);
            Journal::putMeta(database, kUntil, std::to_string(toUnixMillis(now)));
            if (!prune) return;
            // A day at most at once: a clock that jumps ahead must not empty the table.
            Statement(
                database,
                "DELETE FROM usage WHERE hour < ? AND hour < (SELECT min(hour) + 24 FROM usage)")
                .bind(hour - UsageReports::kKeptHours)
                .run();
        },
        {}, kRowBytes * added.size());
    return added;
}

std::optional<WallTime> UsageBook::knownUntil() {
    const std::string text = journal_.meta(kUntil);
    std::int64_t ms = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return fromUnixMillis(ms);
}

std::vector<UsageRow> UsageBook::read(const std::string& tenant, const UsageQuery& query,
                                      WallTime now) {
    std::map<Key, UsageSums> found;
    const auto key = [&](const std::string& of_tenant, const std::string& of_pool) {
        return Key(query.by_tenant ? of_tenant : "", query.by_pool ? of_pool : "");
    };
    // Months that follow each other share no hour.
    const std::int64_t last =
        query.until ? hourOf(*query.until - std::chrono::milliseconds(1)) : hourOf(now);
    const std::int64_t first = hourOf(query.since);
    journal_.flush(kReadYourWrites);
    {
        const MutexLock lock(mutex_);
        for (const auto& [of, sums] : pending_) {
            const bool covered = first <= hourOf(now) && hourOf(now) <= last;
            if (covered && (tenant.empty() || of.first == tenant)) {
                found[key(of.first, of.second)] += sums;
            }
        }
    }
    journal_.read(tenant, [&](Database& database) {
        Statement rows(
            // Unlike sum(), total() cannot overflow; as an integer, it ends at kLargestSum.
            database,
            std::string("SELECT tenant, pool, total(claims), total(sandbox_ms), total(cpu_us), "
                        "total(gpu_ms), total(memory_kib_secs), total(egress_bytes) FROM usage "
                        "WHERE ") +
                (tenant.empty() ? "" : "tenant = ? AND ") +
                "hour BETWEEN ? AND ? GROUP BY tenant, pool");
        if (!tenant.empty()) rows.bind(tenant);
        rows.bind(first).bind(last);
        while (rows.step()) {
            found[key(rows.text(0), rows.text(1))] +=
                {unsignedAt(rows, 2), unsignedAt(rows, 3), unsignedAt(rows, 4),
                 unsignedAt(rows, 5), unsignedAt(rows, 6), unsignedAt(rows, 7)};
        }
    });
    std::vector<UsageRow> rows;
    rows.reserve(found.size());
    for (const auto& [of, sums] : found) rows.push_back({of.first, of.second, sums});
    return rows;
}

}  // namespace hearth::controller
