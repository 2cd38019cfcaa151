#include "api/cli/top/TopTable.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "api/cli/remote/Tables.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastCut = 6;  ///< columns that a cut text keeps
constexpr std::size_t kMarker = 2;    ///< the cursor's, as colour alone is not enough

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
    return {numberText(std::clamp(value, 0.0, 1.0) * 100, "%.1f%%"), value};
}

TopCell word(const std::string& text) {
    return {text.empty() ? "-" : text};
}

TopRow poolRow(const Json& pool) {
    const Json& status = valueAt(pool, "/status");
    const std::string name = cellAt(valueAt(pool, "/metadata"), "name");
    const std::string state = cellText(poolStatus(pool));
    const std::string why = cellText(poolWhy(pool));
    const auto number = [&](const char* path) { return count(countAt(status, path)); };
    return {
        name,
        state == "Degraded",
        {word(name), number("/ready"), number("/claimed"), number("/creating"), number("/desired"),
         number("/waiting"), share(numberAt(status, "/missRate").value_or(0)),
         word(why.empty() ? state : state + ": " + why)}};
}

TopRow workspaceRow(const Json& one, const Overview& overview, WallTime now) {
    const std::string id = textAt(one, "id");
    const auto running = overview.running.find(id);
    const std::size_t runs = running == overview.running.end() ? 0 : running->second;
    const auto text = [&](const char* key) { return word(cellAt(one, key)); };
    return {id,
            false,
            {word(shortId(id)), text("name"), text("tenant"), text("pool"), text("phase"),
             span(textAt(one, "createdAt"), now, 1), span(textAt(one, "idleExpiresAt"), now, -1),
             count(static_cast<std::int64_t>(runs))}};
}

std::vector<std::size_t> widthsOf(const TopTable& table, std::size_t columns) {
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        std::size_t width = columnsOf(table.columns[i].name);
        for (const TopRow& row : table.rows) width = std::max(width, columnsOf(row.cells[i].text));
        widths.push_back(width);
    }
    const auto total = [&] {
        return std::accumulate(widths.begin(), widths.end(), kMarker) + kGap * (widths.size() - 1);
    };
    while (total() > columns) {
        std::size_t widest = widths.size();
        for (std::size_t i = 0; i < widths.size(); ++i) {
            if (table.columns[i].kind != ColumnKind::Cut || widths[i] <= kLeastCut) continue;
            if (widest == widths.size() || widths[i] > widths[widest]) widest = i;
        }
        if (widest == widths.size()) break;
        --widths[widest];
    }
    return widths;
}

}  // namespace

Screen TopTable::lines(std::size_t page, std::optional<std::size_t> chosen,
                       std::size_t width) const {
    const std::vector<std::size_t> widths = widthsOf(*this, width);
    const auto line = [&](std::string marker, LineStyle style, const auto& text_of) {
        std::string text = std::move(marker);
        for (std::size_t i = 0; i < widths.size(); ++i) {
            if (i > 0) text.append(kGap, ' ');
            text += fitted(text_of(i), widths[i], columns[i].kind == ColumnKind::Number);
        }
        return ScreenLine{fitted(text, width), style};
    };
    Screen lines = {line("  ", LineStyle::Heading, [&](std::size_t i) { return columns[i].name; })};
    const std::size_t first = page == 0 ? 0 : chosen.value_or(0) / page * page;
    for (std::size_t i = first; i < std::min(first + page, rows.size()); ++i) {
        const auto cell = [&](std::size_t column) { return rows[i].cells[column].text; };
        const LineStyle style = rows[i].alarm ? LineStyle::Alarm : LineStyle::Plain;
        lines.push_back(chosen == i ? line("> ", LineStyle::Selected, cell)
                                    : line("  ", style, cell));
    }
    lines.resize(page + 1);
    return lines;
}

TopTable topTable(TopList which, const Overview& overview, WallTime now) {
    using enum ColumnKind;
    if (which == TopList::Pools) {
        TopTable table{{{"NAME", Cut},
                        {"READY", Number},
                        {"CLAIMED", Number},
                        {"CREATING", Number},
                        {"TARGET", Number},
                        {"WAITING", Number},
                        {"MISSES", Number},
                        {"STATE", Cut}}};
        for (const Json& pool : overview.pools) table.rows.push_back(poolRow(pool));
        return table;
    }
    TopTable table{{{"ID"},
                    {"NAME", Cut},
                    {"TENANT", Cut},
                    {"POOL", Cut},
                    {"PHASE"},
                    {"AGE", Number},
                    {"IDLE", Number},
                    {"RUNS", Number}}};
    for (const Json& one : overview.workspaces) {
        table.rows.push_back(workspaceRow(one, overview, now));
    }
    return table;
}

TopTable runTable(const WorkspaceDetail& detail, WallTime now) {
    using enum ColumnKind;
    TopTable table{{{"EXECUTION", Cut},
                    {"STATUS"},
                    {"EXIT", Number},
                    {"LANGUAGE", Cut},
                    {"TOOK", Number},
                    {"STARTED", Number}}};
    for (const Json& run : detail.runs) {
        const std::string language = textAt(run, "language");
        const Json& code = valueAt(run, "/exitCode");
        const auto took = numberAt(run, "/durationMs");
        const std::string started = age(textAt(run, "startedAt"), now);
        table.rows.push_back({"",
                              false,
                              {{cellAt(run, "id")},
                               {cellAt(run, "status")},
                               {code.is_number() ? dumpJson(code) : "-"},
                               {language.empty() ? "command" : cellText(language)},
                               {took ? numberText(*took, "%.1fms") : "-"},
                               {started == "-" ? started : started + " ago"}}});
    }
    return table;
}

std::string cellAt(const Json& object, const char* key) {
    return cellText(textAt(object, key));
}

std::string shortId(const std::string& id) {
    constexpr std::size_t kShown = 11;  // "ws_" and eight digits
    return cellText(id.substr(0, kShown));
}

}  // namespace hearth::cli
