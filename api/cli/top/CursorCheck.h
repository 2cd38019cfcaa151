#pragma once

namespace hearth::cli {

/// Checks that the cursor of the terminal on standard output, as TERM names it, can be moved.
bool cursorMoves();

}  // namespace hearth::cli
