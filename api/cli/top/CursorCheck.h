#pragma once

namespace hearth::cli {

/// Checks that the terminal on standard output, as TERM names it, has a cursor that can be moved.
bool cursorMoves();

}  // namespace hearth::cli
