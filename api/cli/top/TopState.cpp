#include "api/cli/top/TopState.h"

#include <algorithm>
#include <limits>

#include "base/Units.h"
#include "base/http/Url.h"

namespace hearth::cli {

void TopState::sortBy(const std::string& column) {
    bool found = false;
    std::vector<std::string> names;
    for (const TopList which : {TopList::Pools, TopList::Workspaces}) {
        const std::vector<TopColumn> columns = topTable(which, {}, {}).columns;
        for (std::size_t i = 0; i < columns.size(); ++i) {
            const std::string& name = columns[i].name;
            if (std::ranges::find(names, name) == names.end()) names.push_back(name);
            if (!equalsIgnoreCase(name, column)) continue;
            lists.at(which).sort = i;
            found = true;
        }
    }
    if (!found) throw unknownWord("there is no column \"" + column + "\"", column, names);
}

TopTable TopState::table(TopList which, const Overview& overview, WallTime now) const {
    TopTable table = topTable(which, overview, now);
    const auto has = [part = toLower(filter)](const std::string& text) {
        return toLower(text).find(part) != std::string::npos;
    };
    std::erase_if(table.rows, [&](const TopRow& row) {
        return !has(row.key) && std::ranges::none_of(row.cells, has, &TopCell::text);
    });
    const List& order = lists.at(which);
    std::ranges::sort(table.rows, [&](const TopRow& a, const TopRow& b) {
        const TopCell& left = a.cells[order.sort];
        const TopCell& right = b.cells[order.sort];
        if (left.order != right.order) return (left.order < right.order) != order.reverse;
        if (left.text != right.text) return (left.text < right.text) != order.reverse;
        return a.key < b.key;
    });
    return table;
}

std::size_t TopState::placeIn(TopList which, const TopTable& table) const {
    if (table.rows.empty()) return 0;
    const auto found = std::ranges::find(table.rows, lists.at(which).selected, &TopRow::key);
    // If a row has gone, the next row takes its place.
    if (found == table.rows.end()) return std::min(lists.at(which).place, table.rows.size() - 1);
    return static_cast<std::size_t>(found - table.rows.begin());
}

void TopState::press(char32_t key, const Overview& overview, std::size_t page, WallTime now) {
    message.clear();
    if (asks) return answer(key == U'y' || key == U'Y');
    if (mode == TopMode::Filter) return filterKey(key);
    if (mode == TopMode::Help) {
        mode = TopMode::Browse;
        return;
    }
    switch (key) {
        case U'q':
            quit = true;
            return;
        case U'p':
            paused = !paused;
            return;
        case U'+':
        case U'-':
            interval = std::clamp(key == U'+' ? interval * 2 : interval / 2, kShortestInterval,
                                  kLongestInterval);
            message = "refresh every " + formatDuration(interval);
            return;
        case U'd':
        case Key::Delete:
            asks = mode == TopMode::Detail || choose(overview, now);
            return;
        default:
            break;
    }
    if (mode == TopMode::Browse) return browseKey(key, overview, page, now);
    if (key == Key::Escape || key == Key::Backspace) mode = TopMode::Browse;
}

void TopState::browseKey(char32_t key, const Overview& overview, std::size_t page, WallTime now) {
    constexpr auto kAll = std::numeric_limits<std::ptrdiff_t>::max() / 2;
    const auto rows = static_cast<std::ptrdiff_t>(std::max<std::size_t>(page, 1));
    const std::map<char32_t, std::ptrdiff_t> steps = {
        {Key::Up, -1},         {U'k', -1},         {Key::Down, 1},  {U'j', 1}, {Key::PageUp, -rows},
        {Key::PageDown, rows}, {Key::Home, -kAll}, {Key::End, kAll}};
    if (const auto step = steps.find(key); step != steps.end()) {
        return move(step->second, overview, now);
    }
    List& mine = lists.at(focus);
    switch (key) {
        case Key::Tab:
            focus = focus == TopList::Pools ? TopList::Workspaces : TopList::Pools;
            return;
        case Key::Enter:
            if (choose(overview, now)) mode = TopMode::Detail;
            return;
        case Key::Escape:
            return filter.clear();
        case Key::Backspace:
            return;
        case U's':
            mine.sort = (mine.sort + 1) % topTable(focus, {}, {}).columns.size();
            return;
        case U'r':
            mine.reverse = !mine.reverse;
            return;
        case U'/':
            mode = TopMode::Filter;
            return;
        case U'?':
            mode = TopMode::Help;
            return;
        default:
            message = "no such key; ? lists them";
    }
}

void TopState::answer(bool yes) {
    asks = false;
    message = yes ? "ending " + shortId(target) + " …" : "not ended";
    if (!yes) return;
    mode = TopMode::Browse;
    endings.push_back(target);
}

void TopState::filterKey(char32_t key) {
    constexpr std::size_t kLongest = 200;
    if (key == Key::Enter || key == Key::Escape) mode = TopMode::Browse;
    if (key == Key::Escape) filter.clear();
    if (key == Key::Backspace) {
        while (!filter.empty() && (static_cast<unsigned char>(filter.back()) & 0xC0U) == 0x80U) {
            filter.pop_back();
        }
        if (!filter.empty()) filter.pop_back();
    }
    if (key < Key::Up && filter.size() < kLongest) filter = cellText(filter + utf8Of(key));
}

void TopState::move(std::ptrdiff_t by, const Overview& overview, WallTime now) {
    const TopTable rows = table(focus, overview, now);
    if (rows.rows.empty()) return;
    const auto last = static_cast<std::ptrdiff_t>(rows.rows.size()) - 1;
    const auto from = static_cast<std::ptrdiff_t>(placeIn(focus, rows));
    List& mine = lists.at(focus);
    mine.place = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(from + by, 0, last));
    mine.selected = rows.rows[mine.place].key;
}

bool TopState::choose(const Overview& overview, WallTime now) {
    const TopTable rows = table(TopList::Workspaces, overview, now);
    if (focus != TopList::Workspaces || rows.rows.empty()) {
        message = rows.rows.empty() ? "there is no workspace" : "Tab chooses the workspaces";
        return false;
    }
    move(0, overview, now);  // the place under the cursor becomes the choice
    target = lists.at(focus).selected;
    return true;
}

}  // namespace hearth::cli
