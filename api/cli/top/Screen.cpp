#include "api/cli/top/Screen.h"

#include <algorithm>
#include <iterator>

#include "api/cli/remote/Tables.h"
#include "base/Units.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kMostDegraded = 2;
constexpr std::size_t kBothLists = 14;  ///< a screen with fewer rows shows one list
constexpr std::size_t kTitles = 2;      ///< a list's name and its columns

void append(Screen& screen, Screen lines) {
    std::ranges::move(lines, std::back_inserter(screen));
}

std::string titleOf(const Overview& overview) {
    std::string title = "hearth top  " + cellText(overview.url);
    if (!overview.version.empty()) title += "  " + cellText(overview.version);
    return title;
}

std::string claimsOf(const ClaimWindow& claims) {
    const std::vector<double> ms = claims.milliseconds();
    std::string rate =
        "claims seen in the last minute: " + numberText(claims.perSecond(), "%.2f") + "/s";
    if (ms.empty()) return rate;
    return rate + ", median " + numberText(ms[(ms.size() - 1) / 2], "%.1f") + " ms, worst " +
           numberText(ms.back(), "%.1f") + " ms (" + std::to_string(ms.size()) + ")";
}

Screen overviewLines(const Overview& overview) {
    const auto sum = [&](const char* path) {
        std::int64_t all = 0;
        for (const Json& pool : overview.pools) all += countAt(pool, path);
        return std::to_string(all);
    };
    Screen lines = {
        {"sandboxes: " + sum("/status/ready") + " ready, " + sum("/status/claimed") + " claimed, " +
         sum("/status/creating") + " creating; waiting claims: " + sum("/status/waiting")},
        {claimsOf(overview.claims)}};
    if (!overview.pressure.is_null()) {
        const auto percent = [&](const char* path) {
            return numberText(numberAt(overview.pressure, path).value_or(0), "%.0f") + "%";
        };
        lines.push_back({"host at a recent claim: tasks waited for cpu " + percent("/cpu") +
                         ", memory " + percent("/memory") + ", disk " + percent("/io")});
    }
    std::size_t degraded = 0;
    for (const Json& pool : overview.pools) {
        if (poolStatus(pool) != "Degraded" || ++degraded > kMostDegraded) continue;
        const std::string why = cellText(poolWhy(pool));
        lines.push_back({"degraded pool " + cellAt(valueAt(pool, "/metadata"), "name") +
                             (why.empty() ? "" : ": " + why),
                         LineStyle::Alarm});
    }
    if (degraded > kMostDegraded) {
        lines.push_back({"and " + std::to_string(degraded - kMostDegraded) + " more degraded",
                         LineStyle::Alarm});
    }
    return lines;
}

std::string listTitle(TopList which, const TopTable& table, const Overview& overview,
                      const TopState& state) {
    const bool pools = which == TopList::Pools;
    std::string text = pools ? "pools " : "workspaces ";
    text += std::to_string(table.rows.size()) + " of " +
            std::to_string((pools ? overview.pools : overview.workspaces).size());
    if (!pools && overview.more_workspaces) text += " or more";
    text += ", by " + table.columns[state.lists.at(which).sort].name;
    if (state.lists.at(which).reverse) text += " reversed";
    if (!state.filter.empty()) text += ", with \"" + state.filter + "\"";
    return text;
}

std::string questionOf(const Overview& overview, const std::string& id) {
    constexpr std::size_t kLongest = 30;
    const std::string name = cellAt(workspaceIn(overview, id), "name");
    const std::string shown = fitted(name, std::min(columnsOf(name), kLongest));
    return "end workspace " + shortId(id) + (name.empty() ? "" : " (" + shown + ")") +
           " and all that runs in it? y/N";
}

std::string footerOf(const Overview& overview, const TopState& state) {
    if (state.asks) return questionOf(overview, state.target);
    if (state.mode == TopMode::Filter) {
        return "filter: " + state.filter + "_   (Enter keeps it, Esc clears it)";
    }
    if (state.mode == TopMode::Help) return "any key goes back";
    if (!state.message.empty()) return state.message;
    if (state.mode == TopMode::Detail) return "Esc back  d end  p pause  + - interval  q quit";
    return "Tab list  s sort  / filter  Enter open  d end  p pause  ? help  q quit";
}

Screen helpLines() {
    return {{""},
            {"Tab             from pools to workspaces and back"},
            {"arrows, j, k    the row above or below; also PgUp, PgDn, Home, End"},
            {"s               sort by the next column"},
            {"r               reverse the order"},
            {"/               show rows with a text in any column; Esc shows all"},
            {"Enter           open a workspace: what it runs, uses, and how its claim went"},
            {"d, Delete       end the chosen workspace; asks first"},
            {"p               pause: the server is not asked until p again"},
            {"+, -            ask less or more often"},
            {"q, Ctrl-C       quit"},
            {""},
            {"MISSES          recent claims that found no ready sandbox"},
            {"IDLE            time until an idle workspace ends; - while something runs"},
            {"RUNS            executions running"}};
}

/// The first lines of every screen.
Screen headerLines(const Overview& overview, const TopState& state, std::size_t columns) {
    Screen lines;
    if (!overview.failure.empty()) {
        const std::string retry =
            state.paused ? ""
                         : "asks again in " + std::to_string(overview.retry_in.count()) + " s: ";
        lines.push_back(
            {"LOST THE SERVER, " + retry + cellText(overview.failure), LineStyle::Alarm});
    }
    const std::string pace = state.paused ? "PAUSED" : "every " + formatDuration(state.interval);
    const std::size_t room = columns > pace.size() + 2 ? columns - pace.size() - 2 : 0;
    lines.push_back({fitted(titleOf(overview), room) + "  " + pace, LineStyle::Bold});
    return lines;
}

/// The lines of the opened workspace; may be more than fit.
Screen detailLines(const Overview& overview, const std::string& id, std::size_t columns,
                   WallTime now) {
    Screen lines;
    const auto put = [&](const std::string& name, const std::string& value) {
        lines.push_back({fitted(name, 12) + value});
    };
    put("workspace", cellText(id));
    if (const Json& one = workspaceIn(overview, id); !one.is_null()) {
        const std::string name = cellAt(one, "name");
        put("name", name.empty() ? "-" : name);
        put("tenant", cellAt(one, "tenant"));
        put("pool", cellAt(one, "pool"));
        put("phase", cellAt(one, "phase") + ", " + age(textAt(one, "createdAt"), now) + " old");
    }
    const WorkspaceDetail& detail = overview.opened;
    if (!detail.loaded || detail.id != id) {
        put("", "asking …");
        return lines;
    }
    const auto bytes = [&](const char* path) {
        return formatSize(numberAt(detail.usage, path).value_or(0));
    };
    put("cpu so far", numberText(numberAt(detail.usage, "/cpuMs").value_or(0) / 1000, "%.1f s"));
    put("memory", bytes("/memoryBytes") + " (at most " + bytes("/memoryPeakBytes") + ")");
    put("disk", bytes("/diskBytes") + " of " + bytes("/diskLimitBytes"));
    put("processes", std::to_string(countAt(detail.usage, "/processes")));
    if (!detail.sentence.empty()) lines.emplace_back();
    for (const std::string& line : wrapped(cellText(detail.sentence), columns)) {
        lines.push_back({line});
    }
    lines.emplace_back();
    const TopTable runs = runTable(detail, now);
    if (runs.rows.empty()) {
        put("", "nothing has run in it");
    } else {
        append(lines, runs.lines(runs.rows.size(), {}, columns));
    }
    return lines;
}

/// Rows of the pools' list: a third of those that both lists have, or all that workspaces leave.
std::size_t poolRows(std::size_t rows, std::size_t pools, std::size_t workspaces) {
    const std::size_t spare = rows > workspaces ? rows - workspaces : 0;
    return std::min({std::max<std::size_t>(pools, 1), std::max(rows / 3, spare), rows});
}

void appendLists(Frame& frame, const Overview& overview, const TopState& state, ScreenSize size,
                 WallTime now) {
    const TopTable pools = state.table(TopList::Pools, overview, now);
    const TopTable workspaces = state.table(TopList::Workspaces, overview, now);
    const bool both = size.rows >= kBothLists;
    const std::size_t taken = frame.lines.size() + (both ? 2 * kTitles : kTitles) + 1;
    const std::size_t left = size.rows > taken ? size.rows - taken : 0;
    const std::size_t above = poolRows(left, pools.rows.size(), workspaces.rows.size());
    for (const TopList which : {TopList::Pools, TopList::Workspaces}) {
        const bool chosen = state.focus == which;
        if (!both && !chosen) continue;
        const TopTable& table = which == TopList::Pools ? pools : workspaces;
        const std::string title = listTitle(which, table, overview, state);
        frame.lines.push_back({(chosen ? "[*] " : "[ ] ") + title, LineStyle::Bold});
        std::size_t page = left;
        if (both) page = which == TopList::Pools ? above : left - above;
        std::optional<std::size_t> cursor;
        if (chosen) {
            cursor = state.placeIn(which, table);
            frame.page = page;
        }
        append(frame.lines, table.lines(page, cursor, size.columns));
    }
}

}  // namespace

Frame composeFrame(const Overview& overview, const TopState& state, ScreenSize size, WallTime now) {
    if (size.rows == 0 || size.columns == 0) return {};
    Frame frame{headerLines(overview, state, size.columns)};
    if (state.mode == TopMode::Help) {
        append(frame.lines, helpLines());
    } else if (state.mode == TopMode::Detail) {
        append(frame.lines, detailLines(overview, state.target, size.columns, now));
    } else if (!overview.loaded) {
        frame.lines.push_back({"asking …"});
    } else {
        append(frame.lines, overviewLines(overview));
        appendLists(frame, overview, state, size, now);
    }
    frame.lines.resize(size.rows - 1);
    // Old numbers are grey, but the reason in the first line and the cursor keep their style.
    for (std::size_t i = 1; i < frame.lines.size() && !overview.failure.empty(); ++i) {
        LineStyle& style = frame.lines[i].style;
        if (style != LineStyle::Selected) style = LineStyle::Dim;
    }
    frame.lines.push_back({footerOf(overview, state), LineStyle::Bold});
    for (ScreenLine& line : frame.lines) line.text = fitted(line.text, size.columns);
    return frame;
}

std::string composeText(const Overview& overview, const TopState& state, WallTime now) {
    constexpr std::size_t kWidest = 1000;
    std::string text = titleOf(overview) + "\n";
    for (const ScreenLine& line : overviewLines(overview)) text += line.text + "\n";
    for (const TopList which : {TopList::Pools, TopList::Workspaces}) {
        const TopTable table = state.table(which, overview, now);
        text += "\n" + listTitle(which, table, overview, state) + "\n";
        for (const ScreenLine& line : table.lines(table.rows.size(), {}, kWidest)) {
            std::string shown = line.text.substr(2);  // without the cursor's column
            shown.erase(shown.find_last_not_of(' ') + 1);
            text += shown + "\n";
        }
    }
    return text;
}

}  // namespace hearth::cli
