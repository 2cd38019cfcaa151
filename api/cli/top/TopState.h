#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "api/cli/top/TopTable.h"

namespace hearth::cli {

/// A key, whatever bytes the terminal sent for it.
enum class Key : std::uint8_t {
    Character,
    Up,
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
struct KeyPress {
    Key key = Key::Character;
    char32_t character = 0;  ///< set for Key::Character
};

enum class TopList : std::uint8_t { Pools, Workspaces };
/// The present task of the screen.
enum class TopMode : std::uint8_t { Browse, Filter, ConfirmEnd, Help, Detail };

/// The action that remains after a key, outside the screen.
struct TopAction {
    enum class Kind : std::uint8_t { None, Quit, Open, Back, End, Refresh } kind = Kind::None;
    std::string id = {};  ///< the workspace's, for Open and End
};

constexpr std::chrono::milliseconds kShortestInterval{500};
constexpr std::chrono::milliseconds kLongestInterval{60'000};

/// The user's choices: lists, sort, filter, mode. Pure; keys change it, refreshes do not, so that
/// the answer to a question concerns the workspace in the question. Not thread-safe.
class TopState {
public:
    struct List {
        std::size_t sort = 0;  ///< the column's number
        bool reverse = false;
        std::string selected;   ///< key of the chosen row; empty: the first one
        std::size_t place = 0;  ///< the number of that row when it was last seen
    };

    explicit TopState(std::chrono::milliseconds interval) : interval_(interval) {
        own(TopList::Workspaces).sort = 5;  // the youngest first
    }
    /// Sorts the lists that have the column. False if none has.
    bool sortBy(const std::string& column);
    void filterBy(std::string text) { filter_ = std::move(text); }

    /// `page`: the number of rows of the chosen list that fit on the screen.
    TopAction press(const KeyPress& pressed, const Overview& seen, std::size_t page, WallTime now);
    /// Shows a remark in the last line, until the next key.
    void say(std::string text) { message_ = std::move(text); }
    /// Returns from a workspace, or from the question about it.
    void browse() { mode_ = TopMode::Browse; }

    /// Returns a list filtered and sorted as the user wants it.
    TopTable table(TopList which, const Overview& seen, WallTime now) const;
    /// The chosen row's number; 0 if there are no rows.
    std::size_t placeIn(TopList which, const TopTable& table) const;

    TopMode mode() const { return mode_; }
    TopList focus() const { return focus_; }
    const List& list(TopList which) const { return lists_[static_cast<std::size_t>(which)]; }
    const std::string& filter() const { return filter_; }
    const std::string& message() const { return message_; }
    /// The workspace that is open, or that the question concerns.
    const std::string& target() const { return target_; }
    /// True if one workspace fills the screen, also during the question about it.
    bool showsDetail() const {
        return mode_ == TopMode::Detail ||
               (mode_ == TopMode::ConfirmEnd && asked_in_ == TopMode::Detail);
    }
    bool paused() const { return paused_; }
    std::chrono::milliseconds interval() const { return interval_; }

private:
    List& own(TopList which) { return lists_[static_cast<std::size_t>(which)]; }
    TopAction browseKey(const KeyPress& pressed, const Overview& seen, std::size_t page,
                        WallTime now);
    TopAction character(char32_t typed, const Overview& seen, WallTime now);
    TopAction detailKey(const KeyPress& pressed);
    void filterKey(const KeyPress& pressed);
    void move(std::ptrdiff_t by, const Overview& seen, WallTime now);
    TopAction ask(TopAction::Kind kind, const Overview& seen, WallTime now);
    TopAction changeInterval(bool longer);

    std::array<List, 2> lists_{};
    TopList focus_ = TopList::Workspaces;
    TopMode mode_ = TopMode::Browse;
    TopMode asked_in_ = TopMode::Browse;  ///< where the question returns to
    std::string filter_;
    std::string message_;
    std::string target_;
    bool paused_ = false;
    std::chrono::milliseconds interval_;
};

}  // namespace hearth::cli
