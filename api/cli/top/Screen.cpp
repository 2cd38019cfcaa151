#include "api/cli/top/Screen.h"

#include <algorithm>

#include "api/cli/remote/Tables.h"
#include "api/cli/top/DetailScreen.h"
#include "api/cli/top/ListLines.h"
#include "api/cli/top/ScreenText.h"
#include "base/Units.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kMostDegraded = 2;
constexpr std::size_t kBothLists = 14;  ///< a screen with fewer rows shows one list

std::string titleOf(const Overview& seen) {
    std::string title = "hearth top  " + seen.url;
    if (!seen.version.empty()) title += "  " + seen.version;
    return title;
}

std::string claimsOf(const Overview& seen) {
    const ClaimFigures& claims = seen.claims;
    std::string text =
        "claims seen in the last minute: " + numberText(claims.per_second, "%.2f") + "/s";
    if (claims.measured == 0) return text;
    return text + ", median " + numberText(claims.median_ms, "%.1f") + " ms, worst " +
           numberText(claims.worst_ms, "%.1f") + " ms (" + std::to_string(claims.measured) + ")";
}

std::vector<StyledText> overviewLines(const Overview& seen) {
    std::int64_t ready = 0;
    std::int64_t claimed = 0;
    std::int64_t creating = 0;
    std::int64_t waiting = 0;
    for (const PoolFacts& pool : seen.pools) {
        ready += pool.ready;
        claimed += pool.claimed;
        creating += pool.creating;
        waiting += pool.waiting;
    }
    std::vector<StyledText> lines;
    lines.push_back({"sandboxes: " + std::to_string(ready) + " ready, " + std::to_string(claimed) +
                     " claimed, " + std::to_string(creating) +
                     " creating; waiting claims: " + std::to_string(waiting)});
    lines.push_back({claimsOf(seen)});
    if (seen.pressure) {
        lines.push_back({"host at a recent claim: tasks waited for cpu " +
                         numberText(seen.pressure->cpu, "%.0f") + "%, memory " +
                         numberText(seen.pressure->memory, "%.0f") + "%, disk " +
                         numberText(seen.pressure->io, "%.0f") + "%"});
    }
    std::size_t degraded = 0;
    for (const PoolFacts& pool : seen.pools) {
        if (pool.state != "Degraded" || ++degraded > kMostDegraded) continue;
        lines.push_back({"degraded pool " + pool.name + (pool.why.empty() ? "" : ": " + pool.why),
                         CellStyle::Alarm});
    }
    if (degraded > kMostDegraded) {
        lines.push_back({"and " + std::to_string(degraded - kMostDegraded) + " more degraded",
                         CellStyle::Alarm});
    }
    return lines;
}

std::string listTitle(TopList which, const Overview& seen, const TopState& state,
                      std::size_t shown) {
    const bool pools = which == TopList::Pools;
    const std::size_t all = pools ? seen.pools.size() : seen.workspaces.size();
    const TopState::List& list = state.list(which);
    std::string text = pools ? "pools " : "workspaces ";
    text += std::to_string(shown) + " of " + std::to_string(all);
    if (!pools && seen.more_workspaces) text += " or more";
    text += ", by " + (pools ? poolColumns() : workspaceColumns())[list.sort].name;
    if (list.reverse) text += " reversed";
    if (!state.filter().empty()) text += ", with \"" + state.filter() + "\"";
    return text;
}

std::string footerOf(const Overview& seen, const TopState& state) {
    switch (state.mode()) {
        case TopMode::Filter:
            return "filter: " + state.filter() + "_   (Enter keeps it, Esc clears it)";
        case TopMode::ConfirmEnd: {
            const auto found =
                std::ranges::find(seen.workspaces, state.target(), &WorkspaceFacts::id);
            const bool named = found != seen.workspaces.end() && !found->name.empty();
            return "end workspace " + shortId(state.target()) +
                   (named ? " (" +
                                fitted(found->name,
                                       std::min<std::size_t>(columnsOf(found->name), 30)) +
                                ")"
                          : "") +
                   " and all that runs in it? y/N";
        }
        case TopMode::Help:
            return "any key goes back";
        case TopMode::Detail:
            if (!state.message().empty()) return state.message();
            return "Esc back  d end  p pause  + - interval  q quit";
        case TopMode::Browse:
            break;
    }
    if (!state.message().empty()) return state.message();
    return "Tab list  s sort  / filter  Enter open  d end  p pause  ? help  q quit";
}

Screen helpLines() {
    Screen lines;
    for (const char* text :
         {"", "Tab             from pools to workspaces and back",
          "arrows, j, k    the row above or below; also PgUp, PgDn, Home, End",
          "s               sort by the next column", "r               reverse the order",
          "/               show rows with a text in any column; Esc shows all",
          "Enter           open a workspace: what it runs, uses, and how its claim went",
          "d, Delete       end the chosen workspace; asks first",
          "p               pause: the server is not asked until p again",
          "+, -            ask less or more often", "q, Ctrl-C       quit", "",
          "MISSES          recent claims that found no ready sandbox",
          "IDLE            time until an idle workspace ends; - while something runs",
          "RUNS            executions running"}) {
        lines.push_back({{text}});
    }
    return lines;
}

struct Room {
    std::size_t pools = 0;
    std::size_t workspaces = 0;
    bool both = true;
};

/// Pools get a third of the rows between header and footer, or the rows left by workspaces.
Room roomFor(std::size_t header, std::size_t pools, std::size_t workspaces, const TopState& state,
             ScreenSize size) {
    constexpr std::size_t kTitles = 2;  // a list's name and its columns
    Room room;
    room.both = size.rows >= kBothLists;
    const std::size_t taken = header + 1 + (room.both ? 2 * kTitles : kTitles);
    const std::size_t left = size.rows > taken ? size.rows - taken : 0;
    if (!room.both) {
        (state.focus() == TopList::Pools ? room.pools : room.workspaces) = left;
        return room;
    }
    const std::size_t spare = left > workspaces ? left - workspaces : 0;
    room.pools = std::min({std::max<std::size_t>(pools, 1), std::max(left / 3, spare), left});
    room.workspaces = left - room.pools;
    return room;
}

/// The lines above the lists.
Screen headerLines(const Overview& seen, const TopState& state, const Connection& connection,
                   std::size_t columns) {
    Screen lines;
    if (!connection.failure.empty()) {
        std::string text = connection.failure;
        if (!state.paused()) {
            text = "asks again in " + std::to_string(connection.retry_in.count()) + " s: " + text;
        }
        lines.push_back({{fitted("LOST THE SERVER, " + text, columns), CellStyle::Alarm}});
    }
    const std::string pace =
        state.paused() ? "PAUSED" : "every " + formatDuration(state.interval());
    const std::size_t room = columns > pace.size() + 2 ? columns - pace.size() - 2 : 0;
    lines.push_back(
        {{fitted(fitted(titleOf(seen), room) + "  " + pace, columns), CellStyle::Bold}});
    if (state.showsDetail() || state.mode() == TopMode::Help) return lines;
    if (!seen.loaded) {
        lines.push_back({{fitted("asking …", columns)}});
        return lines;
    }
    for (const StyledText& line : overviewLines(seen)) {
        lines.push_back({{fitted(line.text, columns), line.style}});
    }
    return lines;
}

void append(Screen& screen, Screen lines) {
    for (ScreenLine& line : lines) screen.push_back(std::move(line));
}

void appendLists(Screen& screen, const Overview& seen, const TopState& state, ScreenSize size,
                 WallTime now) {
    const TopTable pools = state.table(TopList::Pools, seen, now);
    const TopTable workspaces = state.table(TopList::Workspaces, seen, now);
    const Room room =
        roomFor(screen.size(), pools.rows.size(), workspaces.rows.size(), state, size);
    for (const TopList which : {TopList::Pools, TopList::Workspaces}) {
        const bool chosen = state.focus() == which;
        if (!room.both && !chosen) continue;
        const TopTable& table = which == TopList::Pools ? pools : workspaces;
        const std::string title =
            (chosen ? "[*] " : "[ ] ") + listTitle(which, seen, state, table.rows.size());
        screen.push_back({{fitted(title, size.columns), CellStyle::Bold}});
        ListWindow window{which == TopList::Pools ? room.pools : room.workspaces, std::nullopt};
        if (chosen) window.chosen = state.placeIn(which, table);
        append(screen, listLines(table, window, size.columns));
    }
}

}  // namespace

std::size_t pageRows(const Overview& seen, const TopState& state, const Connection& connection,
                     ScreenSize size, WallTime now) {
    const Utf8Locale utf8;
    const Room room = roomFor(headerLines(seen, state, connection, size.columns).size(),
                              state.table(TopList::Pools, seen, now).rows.size(),
                              state.table(TopList::Workspaces, seen, now).rows.size(), state, size);
    return state.focus() == TopList::Pools ? room.pools : room.workspaces;
}

Screen composeScreen(const Overview& seen, const WorkspaceDetail& detail, const TopState& state,
                     const Connection& connection, ScreenSize size, WallTime now) {
    const Utf8Locale utf8;
    if (size.rows == 0 || size.columns == 0) return {};
    Screen screen = headerLines(seen, state, connection, size.columns);
    const std::size_t first = connection.failure.empty() ? 0 : 1;
    if (state.mode() == TopMode::Help) {
        append(screen, helpLines());
    } else if (state.showsDetail()) {
        append(screen, detailLines(seen, detail, state.target(), size.columns, now));
    } else if (seen.loaded) {
        appendLists(screen, seen, state, size, now);
    }
    screen.resize(size.rows - 1);
    for (std::size_t i = 0; i < screen.size(); ++i) {
        for (StyledText& part : screen[i]) {
            if (columnsOf(part.text) > size.columns) part.text = fitted(part.text, size.columns);
            // Old numbers are grey, but the cursor and the reason keep their style.
            const bool old = i >= first && first > 0 && part.style != CellStyle::Selected;
            if (old) part.style = CellStyle::Dim;
        }
    }
    screen.push_back({{fitted(footerOf(seen, state), size.columns), CellStyle::Bold}});
    return screen;
}

std::string composeText(const Overview& seen, const TopState& state, WallTime now) {
    const Utf8Locale utf8;
    std::string text = titleOf(seen) + "\n";
    for (const StyledText& line : overviewLines(seen)) text += line.text + "\n";
    for (const TopList which : {TopList::Pools, TopList::Workspaces}) {
        const TopTable table = state.table(which, seen, now);
        text += "\n" + listTitle(which, seen, state, table.rows.size()) + "\n";
        constexpr std::size_t kWidest = 1000;
        for (const ScreenLine& line :
             listLines(table, {table.rows.size(), std::nullopt}, kWidest)) {
            std::string shown = line.empty() ? "" : line[0].text.substr(2);
            shown.erase(shown.find_last_not_of(' ') + 1);
            text += shown + "\n";
        }
    }
    return text;
}

}  // namespace hearth::cli
