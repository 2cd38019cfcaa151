#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "api/rest/gate/Operation.h"

namespace hearth::rest {

/// `limit` and `cursor` of a list that the services return whole: one page holds all of it unless
/// the client wants smaller pages.
std::vector<Parameter> wholeListParameters();

/// The key that a cursor stands for; empty: from the beginning. Throws Error(InvalidArgument) for a
/// text that is no cursor.
std::string keyOfCursor(const std::string& cursor);
std::string cursorOfKey(const std::string& key);

template <typename Item>
struct Page {
    std::vector<Item> items;
    std::string next_cursor;  ///< empty: the last page
};

/// The page that `call` asks for, in the order of `key`, which is unique to each item and never
/// changes: items that come and go meanwhile neither appear twice nor push others out.
template <typename Item, typename Key>
Page<Item> pageOf(const Call& call, std::vector<Item> items, const Key& key,
                  bool descending = false) {
    const std::string after = keyOfCursor(call.queryOr<std::string>("cursor", ""));
    const auto limit = call.queryOr<std::size_t>("limit", 1000);
    std::vector<std::pair<std::string, std::size_t>> order;
    for (std::size_t i = 0; i < items.size(); ++i) {
        std::string own = key(items[i]);
        if (!after.empty() && (descending ? own >= after : own <= after)) continue;
        order.emplace_back(std::move(own), i);
    }
    std::sort(order.begin(), order.end());
    if (descending) std::reverse(order.begin(), order.end());
    Page<Item> page;
    for (std::size_t i = 0; i < order.size() && i < limit; ++i) {
        page.items.push_back(std::move(items[order[i].second]));
    }
    if (order.size() > limit) page.next_cursor = cursorOfKey(order[limit - 1].first);
    return page;
}

}  // namespace hearth::rest
