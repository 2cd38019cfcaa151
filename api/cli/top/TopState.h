#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/cli/top/TopTable.h"

namespace hearth::cli {

/// The keys that are no characters, beyond all code points.
struct Key {
    enum Code : char32_t {
        Up = 0x110000,
        Down,
        PageUp,
        PageDown,
        Home,
        End,
        Tab,
        Enter,
        Escape,
        Backspace,
        Delete,
    };
};

/// The present task of the screen.
enum class TopMode : std::uint8_t { Browse, Filter, Help, Detail };

constexpr std::chrono::milliseconds kShortestInterval{500};
constexpr std::chrono::milliseconds kLongestInterval{60'000};

/// The user's choices: lists, sort, filter, mode. Keys change it, refreshes do not, so that the
/// answer to a question concerns the workspace in the question. A value type.
struct TopState {
    struct List {
        std::size_t sort = 0;  ///< the column's number
        bool reverse = false;
        std::string selected = {};  ///< key of the chosen row; empty: the first one
        std::size_t place = 0;      ///< the number of that row when it was last seen
    };

    /// Sorts the lists that have the column. Throws UsageError if none has.
    void sortBy(const std::string& column);
    /// Obeys a character or a Key. `page`: the number of rows of the chosen list on the screen.
    void press(char32_t key, const Overview& overview, std::size_t page, WallTime now);

    /// Returns a list filtered and sorted as the user wants it.
    TopTable table(TopList which, const Overview& overview, WallTime now) const;
    /// The chosen row's number; 0 if there are no rows.
    std::size_t placeIn(TopList which, const TopTable& table) const;

    std::chrono::milliseconds interval{2'000};  ///< between two looks at the server
    bool paused = false;
    bool quit = false;
    TopMode mode = TopMode::Browse;
    bool asks = false;  ///< the last line asks whether the target shall end
    TopList focus = TopList::Workspaces;
    /// Workspaces: the youngest first.
    std::map<TopList, List> lists = {{TopList::Pools, {}}, {TopList::Workspaces, {.sort = 5}}};
    std::string filter = {};
    std::string message = {};               ///< shown in the last line until the next key
    std::string target = {};                ///< the workspace that is open or in the question
    std::vector<std::string> endings = {};  ///< workspaces to end; the poller takes them

private:
    void browseKey(char32_t key, const Overview& overview, std::size_t page, WallTime now);
    void filterKey(char32_t key);
    void answer(bool yes);
    void move(std::ptrdiff_t by, const Overview& overview, WallTime now);
    /// Makes the chosen workspace the target; if there is none, says so and returns false.
    bool choose(const Overview& overview, WallTime now);
};

}  // namespace hearth::cli
