#include "api/cli/top/DetailScreen.h"

#include <algorithm>
#include <cstdio>

#include "api/cli/remote/Tables.h"
#include "api/cli/top/ListLines.h"
#include "api/cli/top/ScreenText.h"

namespace hearth::cli {
namespace {

std::string tookText(const WorkspaceDetail::Run& run) {
    if (!run.took_ms) return "-";
    char text[48];
    std::snprintf(text, sizeof(text), "%.1fms", *run.took_ms);
    return text;
}

TopTable runsTable(const WorkspaceDetail& detail, WallTime now) {
    TopTable table{{{.name = "EXECUTION", .shrinks = true},
                    {.name = "STATUS"},
                    {.name = "EXIT", .right = true},
                    {.name = "LANGUAGE", .shrinks = true},
                    {.name = "TOOK", .right = true},
                    {.name = "STARTED", .right = true}},
                   {}};
    for (const WorkspaceDetail::Run& run : detail.runs) {
        const std::string started = age(run.started_at, now);
        table.rows.push_back({run.id,
                              false,
                              {{run.id},
                               {run.status},
                               {run.exit_code},
                               {run.language},
                               {tookText(run)},
                               {started == "-" ? started : started + " ago"}}});
    }
    return table;
}

}  // namespace

Screen detailLines(const Overview& seen, const WorkspaceDetail& detail, const std::string& id,
                   std::size_t columns, WallTime now) {
    Screen lines;
    const auto put = [&](const std::string& name, const std::string& value) {
        const std::string text = fitted(name, 12) + value;
        lines.push_back({{fitted(text, std::min(columns, columnsOf(text)))}});
    };
    put("workspace", cellText(id));
    const auto found = std::ranges::find(seen.workspaces, id, &WorkspaceFacts::id);
    if (found != seen.workspaces.end()) {
        put("name", found->name.empty() ? "-" : found->name);
        put("tenant", found->tenant);
        put("pool", found->pool);
        put("phase", found->phase + ", " + age(found->created_at, now) + " old");
    }
    if (!detail.loaded || detail.id != id) {
        put("", "asking …");
        return lines;
    }
    for (const auto& [name, value] : detail.usage) put(name, value);
    if (!detail.sentence.empty()) {
        lines.push_back({});
        for (const std::string& line : wrapped(detail.sentence, columns)) lines.push_back({{line}});
    }
    lines.push_back({});
    if (detail.runs.empty()) {
        put("", "nothing has run in it");
        return lines;
    }
    const TopTable runs = runsTable(detail, now);
    for (ScreenLine& line : listLines(runs, {runs.rows.size(), std::nullopt}, columns)) {
        lines.push_back(std::move(line));
    }
    return lines;
}

}  // namespace hearth::cli
