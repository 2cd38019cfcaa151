#include "api/cli/top/CursorCheck.h"

#include <curses.h>
#include <term.h>  // defines many short words as macros: nothing else may be in this file
#include <unistd.h>

#include <cstdint>

namespace hearth::cli {

bool cursorMoves() {
    int error = 0;
    if (::setupterm(nullptr, STDOUT_FILENO, &error) != OK) return false;
    const char* move = ::tigetstr("cup");
    const bool moves = move != nullptr && reinterpret_cast<std::intptr_t>(move) != -1;
    ::del_curterm(::cur_term);
    return moves;
}

}  // namespace hearth::cli
