#include "api/cli/top/TopState.h"

#include <algorithm>
#include <limits>

#include "api/cli/top/ScreenText.h"
#include "base/Units.h"
#include "base/http/Url.h"

namespace hearth::cli {

bool TopState::sortBy(const std::string& column) {
    bool found = false;
    for (const TopList which : {TopList::Pools, TopList::Workspaces}) {
        const auto& columns = which == TopList::Pools ? poolColumns() : workspaceColumns();
        for (std::size_t i = 0; i < columns.size(); ++i) {
            if (!equalsIgnoreCase(columns[i].name, column)) continue;
            own(which).sort = i;
            found = true;
        }
    }
    return found;
}

TopTable TopState::table(TopList which, const Overview& seen, WallTime now) const {
    TopTable table = which == TopList::Pools ? poolTop(seen) : workspaceTop(seen, now);
    table.filter(filter_);
    table.sort(list(which).sort, list(which).reverse);
    return table;
}

std::size_t TopState::placeIn(TopList which, const TopTable& table) const {
    if (table.rows.empty()) return 0;
    const List& mine = list(which);
    const auto found = std::ranges::find(table.rows, mine.selected, &TopRow::key);
    // If a row has gone, the next row takes its place.
    if (found == table.rows.end()) return std::min(mine.place, table.rows.size() - 1);
    return static_cast<std::size_t>(found - table.rows.begin());
}

TopAction TopState::press(const KeyPress& pressed, const Overview& seen, std::size_t page,
                          WallTime now) {
    message_.clear();
    switch (mode_) {
        case TopMode::Filter:
            filterKey(pressed);
            return {};
        case TopMode::ConfirmEnd:
            mode_ = asked_in_;
            if (pressed.key == Key::Character &&
                (pressed.character == U'y' || pressed.character == U'Y')) {
                mode_ = TopMode::Browse;
                return {TopAction::Kind::End, target_};
            }
            say("not ended");
            return {};
        case TopMode::Help:
            mode_ = TopMode::Browse;
            return {};
        case TopMode::Detail:
            return detailKey(pressed);
        case TopMode::Browse:
            break;
    }
    return browseKey(pressed, seen, page, now);
}

TopAction TopState::browseKey(const KeyPress& pressed, const Overview& seen, std::size_t page,
                              WallTime now) {
    constexpr auto kAll = std::numeric_limits<std::ptrdiff_t>::max() / 2;
    const auto rows = static_cast<std::ptrdiff_t>(std::max<std::size_t>(page, 1));
    switch (pressed.key) {
        case Key::Character:
            return character(pressed.character, seen, now);
        case Key::Up:
            move(-1, seen, now);
            break;
        case Key::Down:
            move(1, seen, now);
            break;
        case Key::PageUp:
            move(-rows, seen, now);
            break;
        case Key::PageDown:
            move(rows, seen, now);
            break;
        case Key::Home:
            move(-kAll, seen, now);
            break;
        case Key::End:
            move(kAll, seen, now);
            break;
        case Key::Tab:
            focus_ = focus_ == TopList::Pools ? TopList::Workspaces : TopList::Pools;
            break;
        case Key::Enter:
            return ask(TopAction::Kind::Open, seen, now);
        case Key::Delete:
            return ask(TopAction::Kind::End, seen, now);
        case Key::Escape:
            filter_.clear();
            break;
        case Key::Backspace:
            break;
    }
    return {};
}

TopAction TopState::character(char32_t typed, const Overview& seen, WallTime now) {
    List& mine = own(focus_);
    switch (typed) {
        case U'q':
            return {TopAction::Kind::Quit};
        case U'j':
            move(1, seen, now);
            break;
        case U'k':
            move(-1, seen, now);
            break;
        case U's': {
            const std::size_t columns =
                focus_ == TopList::Pools ? poolColumns().size() : workspaceColumns().size();
            mine.sort = (mine.sort + 1) % columns;
            break;
        }
        case U'r':
            mine.reverse = !mine.reverse;
            break;
        case U'/':
            mode_ = TopMode::Filter;
            break;
        case U'd':
            return ask(TopAction::Kind::End, seen, now);
        case U'p':
            paused_ = !paused_;
            return {TopAction::Kind::Refresh};
        case U'+':
        case U'-':
            return changeInterval(typed == U'+');
        case U'?':
            mode_ = TopMode::Help;
            break;
        default:
            say("no such key; ? lists them");
    }
    return {};
}

TopAction TopState::detailKey(const KeyPress& pressed) {
    if (pressed.key == Key::Escape || pressed.key == Key::Backspace) {
        mode_ = TopMode::Browse;
        return {TopAction::Kind::Back};
    }
    if (pressed.key == Key::Delete) {
        asked_in_ = mode_;
        mode_ = TopMode::ConfirmEnd;
        return {};
    }
    if (pressed.key != Key::Character) return {};
    switch (pressed.character) {
        case U'q':
            return {TopAction::Kind::Quit};
        case U'd':
            return detailKey({Key::Delete});
        case U'p':
            paused_ = !paused_;
            return {TopAction::Kind::Refresh};
        case U'+':
        case U'-':
            return changeInterval(pressed.character == U'+');
        default:
            return {};
    }
}

void TopState::filterKey(const KeyPress& pressed) {
    constexpr std::size_t kLongest = 200;
    if (pressed.key == Key::Enter) mode_ = TopMode::Browse;
    if (pressed.key == Key::Escape) {
        filter_.clear();
        mode_ = TopMode::Browse;
    }
    if (pressed.key == Key::Backspace) {
        while (!filter_.empty() && (static_cast<unsigned char>(filter_.back()) & 0xC0U) == 0x80U) {
            filter_.pop_back();
        }
        if (!filter_.empty()) filter_.pop_back();
    }
    if (pressed.key == Key::Character && filter_.size() < kLongest) {
        filter_ = cellText(filter_ + utf8Of(pressed.character));
    }
}

void TopState::move(std::ptrdiff_t by, const Overview& seen, WallTime now) {
    const TopTable rows = table(focus_, seen, now);
    if (rows.rows.empty()) return;
    const auto last = static_cast<std::ptrdiff_t>(rows.rows.size()) - 1;
    const auto from = static_cast<std::ptrdiff_t>(placeIn(focus_, rows));
    List& mine = own(focus_);
    mine.place = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(from + by, 0, last));
    mine.selected = rows.rows[mine.place].key;
}

TopAction TopState::ask(TopAction::Kind kind, const Overview& seen, WallTime now) {
    const TopTable rows = table(TopList::Workspaces, seen, now);
    if (focus_ != TopList::Workspaces || rows.rows.empty()) {
        say(rows.rows.empty() ? "there is no workspace" : "Tab chooses the workspaces");
        return {};
    }
    List& mine = own(TopList::Workspaces);
    mine.place = placeIn(TopList::Workspaces, rows);
    mine.selected = rows.rows[mine.place].key;
    target_ = mine.selected;
    if (kind == TopAction::Kind::End) {
        asked_in_ = TopMode::Browse;
        mode_ = TopMode::ConfirmEnd;
        return {};
    }
    mode_ = TopMode::Detail;
    return {kind, target_};
}

TopAction TopState::changeInterval(bool longer) {
    interval_ =
        std::clamp(longer ? interval_ * 2 : interval_ / 2, kShortestInterval, kLongestInterval);
    say("refresh every " + formatDuration(interval_));
    return {TopAction::Kind::Refresh};
}

}  // namespace hearth::cli
