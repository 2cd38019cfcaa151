#pragma once

#include <string>
#include <vector>

#include "api/cli/top/TopState.h"

namespace hearth::cli {

enum class CellStyle : std::uint8_t { Plain, Bold, Dim, Heading, Selected, Alarm };

/// Text in one style; without control characters.
struct StyledText {
    std::string text;
    CellStyle style = CellStyle::Plain;
};
using ScreenLine = std::vector<StyledText>;
/// At most as many lines as the terminal has, none wider than it.
using Screen = std::vector<ScreenLine>;

struct ScreenSize {
    std::size_t columns = 80;
    std::size_t rows = 24;
};

/// The connection's state, in addition to the last data.
struct Connection {
    std::string failure = {};  ///< empty: the last look succeeded; else the reason, in one line
    std::chrono::seconds retry_in{0};
};

/// The number of rows for the chosen list on a screen of this size.
std::size_t pageRows(const Overview& seen, const TopState& state, const Connection& connection,
                     ScreenSize size, WallTime now);
/// Composes the whole screen. Pure: the same arguments give the same lines. `detail` is shown only
/// in the mode Detail.
Screen composeScreen(const Overview& seen, const WorkspaceDetail& detail, const TopState& state,
                     const Connection& connection, ScreenSize size, WallTime now);
/// Composes all of it as text for a pipe: every row, no keys, no cursor.
std::string composeText(const Overview& seen, const TopState& state, WallTime now);

}  // namespace hearth::cli
