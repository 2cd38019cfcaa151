#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/Json.h"

namespace hearth::pool::kubernetes {

/// One line of a watch.
struct WatchEvent {
    enum class Kind { Added, Modified, Deleted, Bookmark, Failure };
    Kind kind = Kind::Added;
    Json object;          ///< a Status for Failure
    std::string version;  ///< metadata.resourceVersion; empty only for Failure
    /// A bookmark that ends the initial events of a streamed list.
    bool ends_initial = false;
};

/// Returns nullopt for a line that is no known event: its change cannot be known.
std::optional<WatchEvent> parseWatchEvent(std::string_view line);

}  // namespace hearth::pool::kubernetes
