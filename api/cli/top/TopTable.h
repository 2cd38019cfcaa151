#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/cli/top/Overview.h"
#include "api/cli/top/ScreenText.h"

namespace hearth::cli {

/// How a column is drawn: text in full, text that is cut if the screen is too narrow, or a number
/// at the right.
enum class ColumnKind : std::uint8_t { Text, Cut, Number };
struct TopColumn {
    std::string name;  ///< for the heading and for --sort, in any case
    ColumnKind kind = ColumnKind::Text;
};

/// A text and its sort order within the column: by number, then by text.
struct TopCell {
    std::string text;
    double order = 0;
};

struct TopRow {
    std::string key;     ///< the pool's name or the workspace's id
    bool alarm = false;  ///< needs attention; a cell says so, too
    std::vector<TopCell> cells;
};

/// A list as rows. A value type.
struct TopTable {
    std::vector<TopColumn> columns;
    std::vector<TopRow> rows = {};

    /// A heading and the page of `page` rows with the chosen one, if one is chosen.
    Screen lines(std::size_t page, std::optional<std::size_t> chosen, std::size_t columns) const;
};

enum class TopList : std::uint8_t { Pools, Workspaces };
/// Ages and countdowns are relative to `now`.
TopTable topTable(TopList which, const Overview& overview, WallTime now);
TopTable runTable(const WorkspaceDetail& detail, WallTime now);

/// The text of a field as cellText().
std::string cellAt(const Json& object, const char* key);
/// The beginning of an id, which distinguishes it from others on a screen.
std::string shortId(const std::string& id);

}  // namespace hearth::cli
