#pragma once

#include <string>

#include "api/cli/top/TopState.h"

namespace hearth::cli {

struct ScreenSize {
    std::size_t columns = 80;
    std::size_t rows = 24;
};

/// A screen: as many lines as the terminal has, none wider than it.
struct Frame {
    Screen lines = {};
    std::size_t page = 0;  ///< rows of the chosen list
};

/// Composes the whole screen. Pure: the same arguments give the same lines.
Frame composeFrame(const Overview& overview, const TopState& state, ScreenSize size, WallTime now);
/// Composes all of it as text for a pipe: every row, no keys, no cursor.
std::string composeText(const Overview& overview, const TopState& state, WallTime now);

}  // namespace hearth::cli
