#pragma once

#include <string>
#include <vector>

#include "api/cli/top/Overview.h"

namespace hearth::cli {

struct TopColumn {
    std::string name;      ///< for the heading and for --sort, in any case
    bool right = false;    ///< for numbers
    bool shrinks = false;  ///< may be cut if the screen is too narrow
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

/// A list of the overview as rows, before it is drawn. A value type.
struct TopTable {
    std::vector<TopColumn> columns;
    std::vector<TopRow> rows;

    /// Keeps the rows whose key or any cell contains the text, in any ASCII case.
    void filter(const std::string& text);
    void sort(std::size_t column, bool reverse);
};

const std::vector<TopColumn>& poolColumns();
const std::vector<TopColumn>& workspaceColumns();
TopTable poolTop(const Overview& seen);
/// Ages and countdowns are relative to `now`.
TopTable workspaceTop(const Overview& seen, WallTime now);
/// The beginning of an id, which distinguishes it from others on a screen.
std::string shortId(const std::string& id);

}  // namespace hearth::cli
