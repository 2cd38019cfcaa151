#pragma once

#include <memory>
#include <vector>

#include "api/cli/top/Screen.h"

namespace hearth::cli {

/// The user's terminal while `hearth top` draws on it. The destructor restores it. One at a time,
/// for one thread; ncurses keeps its state for the process.
class CursesScreen {
public:
    /// Takes standard input and output. Throws UsageError if TERM cannot show a screen.
    explicit CursesScreen(bool colours);
    ~CursesScreen();
    CursesScreen(const CursesScreen&) = delete;
    CursesScreen& operator=(const CursesScreen&) = delete;

    /// Sends what has changed since the last call.
    void draw(const Screen& lines);
    /// The keys typed since the last call; waits no longer than one key's bytes take.
    std::vector<KeyPress> keys();
    /// Takes over a new size of the window; call it after SIGWINCH.
    void resize();
    /// Gives the terminal back for a while; the next draw() takes it again.
    void suspend();
    ScreenSize size() const;

private:
    struct Terminal;
    std::unique_ptr<Terminal> terminal_;
};

}  // namespace hearth::cli
