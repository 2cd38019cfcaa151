#include "api/cli/top/TopTable.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "api/cli/remote/Tables.h"
#include "api/cli/top/ScreenText.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

TopCell count(std::int64_t value) {
    return {std::to_string(value), static_cast<double>(value)};
}

/// A missing number sorts after all numbers.
TopCell span(const std::string& time, WallTime now, double sign) {
    const auto since = secondsSince(time, now);
    if (!since) return {"-", std::numeric_limits<double>::max()};
    return {age(time, now), sign * static_cast<double>(*since)};
}

TopCell share(double value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.1f%%", std::clamp(value, 0.0, 1.0) * 100);
    return {text, value};
}

TopCell word(const std::string& text) {
    return {text.empty() ? "-" : text};
}

}  // namespace

void TopTable::filter(const std::string& text) {
    if (text.empty()) return;
    const std::string wanted = toLower(text);
    const auto has = [&](const std::string& cell) {
        return toLower(cell).find(wanted) != std::string::npos;
    };
    std::erase_if(rows, [&](const TopRow& row) {
        return !has(row.key) && std::ranges::none_of(row.cells, has, &TopCell::text);
    });
}

void TopTable::sort(std::size_t column, bool reverse) {
    const auto before = [&](const TopRow& a, const TopRow& b) {
        const TopCell& left = a.cells[column];
        const TopCell& right = b.cells[column];
        if (left.order != right.order) return (left.order < right.order) != reverse;
        if (left.text != right.text) return (left.text < right.text) != reverse;
        return a.key < b.key;
    };
    std::ranges::sort(rows, before);
}

const std::vector<TopColumn>& poolColumns() {
    static const std::vector<TopColumn> columns = {
        {.name = "NAME", .shrinks = true},  {.name = "READY", .right = true},
        {.name = "CLAIMED", .right = true}, {.name = "CREATING", .right = true},
        {.name = "TARGET", .right = true},  {.name = "WAITING", .right = true},
        {.name = "MISSES", .right = true},  {.name = "STATE", .shrinks = true}};
    return columns;
}

const std::vector<TopColumn>& workspaceColumns() {
    static const std::vector<TopColumn> columns = {{.name = "ID"},
                                                   {.name = "NAME", .shrinks = true},
                                                   {.name = "TENANT", .shrinks = true},
                                                   {.name = "POOL", .shrinks = true},
                                                   {.name = "PHASE"},
                                                   {.name = "AGE", .right = true},
                                                   {.name = "IDLE", .right = true},
                                                   {.name = "RUNS", .right = true}};
    return columns;
}

TopTable poolTop(const Overview& seen) {
    TopTable table{poolColumns(), {}};
    for (const PoolFacts& pool : seen.pools) {
        const std::string state = pool.why.empty() ? pool.state : pool.state + ": " + pool.why;
        table.rows.push_back(
            {pool.name,
             pool.state == "Degraded",
             {word(pool.name), count(pool.ready), count(pool.claimed), count(pool.creating),
              count(pool.target), count(pool.waiting), share(pool.miss_rate), word(state)}});
    }
    return table;
}

TopTable workspaceTop(const Overview& seen, WallTime now) {
    TopTable table{workspaceColumns(), {}};
    for (const WorkspaceFacts& one : seen.workspaces) {
        const auto runs = seen.running.find(one.id);
        const std::size_t running = runs == seen.running.end() ? 0 : runs->second;
        table.rows.push_back(
            {one.id,
             false,
             {word(shortId(one.id)), word(one.name), word(one.tenant), word(one.pool),
              word(one.phase), span(one.created_at, now, 1), span(one.idle_expires_at, now, -1),
              count(static_cast<std::int64_t>(running))}});
    }
    return table;
}

std::string shortId(const std::string& id) {
    constexpr std::size_t kShown = 11;  // "ws_" and eight digits
    return cellText(id.substr(0, kShown));
}

}  // namespace hearth::cli
