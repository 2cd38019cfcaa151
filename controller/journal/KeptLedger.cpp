#include "controller/journal/KeptLedger.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/Json.h"
#include "controller/journal/Journal.h"

namespace hearth::controller {
namespace {

constexpr int kRowsAtOnce = 64;
/// With replicas, the rows that one transaction deletes are held in memory.
constexpr std::uint64_t kMostAtOnce = 64U << 20U;
constexpr int kRounds = 8;
/// A longer document is mostly lists of artifacts and packages, and an error's text.
constexpr std::size_t kLongDocument = 8U << 10U;
constexpr std::size_t kLongText = 512;
constexpr std::size_t kMembers = 16;

/// Texts keep their beginning and end, collections their first members.
void clip(Json& value) {
    if (value.is_string()) {
        const auto& text = value.get_ref<const std::string&>();
        if (text.size() <= kLongText) return;
        value = toUtf8(text.substr(0, kLongText / 2)) + " … " +
                toUtf8(text.substr(text.size() - kLongText / 2));
    } else if (value.is_structured()) {
        while (value.size() > kMembers) value.erase(std::prev(value.end()));
        for (Json& each : value) clip(each);
    }
}

/// The same execution without its artifacts, and without most other long parts.
std::string shortened(const std::string& document) {
    if (document.size() <= kLongDocument) return document;
    Json json = Json::parse(document, nullptr, false);
    if (!json.is_object()) return document;
    if (json.contains("artifacts")) {
        json["artifacts"] = Json::array();
        json["artifactsTruncated"] = true;
    }
    for (const char* name : {"error", "packages"}) {
        if (json.contains(name)) clip(json[name]);
    }
    return dumpJson(json);
}

}  // namespace

std::uint64_t KeptLedger::total(Database& database) {
    if (!total_) {
        Statement sum(database, "SELECT coalesce(sum(bytes), 0) FROM kept");
        sum.step();
        total_ = static_cast<std::uint64_t>(sum.integer(0));
    }
    return *total_;
}

void KeptLedger::drop(Database& database, const std::string& execution) {
    Statement(database, "DELETE FROM kept WHERE execution = ?").bind(execution).run();
}

void KeptLedger::add(Database& database, const std::string& execution, const std::string& tenant,
                     std::uint64_t bytes) {
    std::uint64_t before = 0;
    {
        Statement known(database, "SELECT bytes FROM kept WHERE execution = ?");
        if (known.bind(execution).step()) before = static_cast<std::uint64_t>(known.integer(0));
    }
    Statement(database,
              "INSERT OR REPLACE INTO kept (execution, tenant, bytes, shed) "
              "VALUES (?,?,?,0)")
        .bind(execution)
        .bind(tenant)
        .bind(static_cast<std::int64_t>(bytes))
        .run();
    if (total_) total_ = *total_ - std::min(before, *total_) + bytes;
    if (total(database) <= most_) return;
    total_.reset();  // the pruner also removes rows
    if (total(database) <= most_) return;
    goal_ = std::max(most_ / 4 * 3, *total_ - std::min(*total_, kMostAtOnce));
    for (int round = 0; round < kRounds && total(database) > goal_; ++round) {
        std::string greatest;
        {
            Statement most(database,
                           "SELECT tenant FROM kept GROUP BY tenant ORDER BY sum(bytes) DESC "
                           "LIMIT 1");
            if (!most.step()) return;
            greatest = most.text(0);
        }
        if (!shed(database, greatest) && !dropOldest(database, greatest)) return;
    }
}

bool KeptLedger::shed(Database& database, const std::string& tenant) {
    std::vector<std::pair<std::string, std::uint64_t>> largest;
    {
        Statement rows(database,
                       "SELECT execution, bytes FROM kept WHERE shed = 0 AND tenant = ? "
                       "ORDER BY bytes DESC LIMIT ?");
        rows.bind(tenant).bind(std::int64_t{kRowsAtOnce});
        while (rows.step()) {
            largest.emplace_back(rows.text(0), static_cast<std::uint64_t>(rows.integer(1)));
        }
    }
    if (largest.empty()) return false;
    for (const auto& [id, bytes] : largest) {
        if (*total_ <= goal_) break;
        std::string document;
        {
            Statement row(database, "SELECT document FROM executions WHERE id = ?");
            if (row.bind(id).step()) document = row.text(0);
        }
        document = shortened(document);
        Statement(database, "UPDATE executions SET output = ?, document = ? WHERE id = ?")
            .bindBlob(kNoOutput)
            .bind(document)
            .bind(id)
            .run();
        Statement(database, "DELETE FROM outputs WHERE execution = ?").bind(id).run();
        Statement(database, "UPDATE kept SET bytes = ?, shed = 1 WHERE execution = ?")
            .bind(static_cast<std::int64_t>(document.size()))
            .bind(id)
            .run();
        *total_ -= std::min(*total_, bytes - std::min<std::uint64_t>(bytes, document.size()));
    }
    log_.warn("journal.output_shed", {{"tenant", tenant}, {"kept_bytes", *total_}});
    return true;
}

bool KeptLedger::dropOldest(Database& database, const std::string& tenant) {
    std::vector<std::pair<std::string, std::uint64_t>> oldest;
    {
        Statement rows(database,
                       "SELECT kept.execution, kept.bytes FROM kept JOIN executions "
                       "ON executions.id = kept.execution WHERE kept.tenant = ? "
                       "ORDER BY executions.ended_ms LIMIT ?");
        rows.bind(tenant).bind(std::int64_t{kRowsAtOnce});
        while (rows.step()) {
            oldest.emplace_back(rows.text(0), static_cast<std::uint64_t>(rows.integer(1)));
        }
    }
    for (const auto& [id, bytes] : oldest) {
        if (*total_ <= goal_) break;
        Statement(database, "DELETE FROM executions WHERE id = ?").bind(id).run();
        drop(database, id);
        *total_ -= std::min(*total_, bytes);
    }
    log_.warn("journal.records_dropped", {{"tenant", tenant}, {"records", oldest.size()}});
    return !oldest.empty();
}

}  // namespace hearth::controller
