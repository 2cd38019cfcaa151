#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "base/Clock.h"

namespace hearth::cli {

/// Figures of the claims of the last minute.
struct ClaimFigures {
    double per_second = 0;     ///< workspaces seen that were claimed in the last minute, by 60
    std::size_t measured = 0;  ///< claims with a known time
    double median_ms = 0;
    double worst_ms = 0;
};

/// The claims of the last minute, as far as lists of workspaces showed them: a workspace that ended
/// between two looks was never seen. A value type, not thread-safe.
class ClaimWindow {
public:
    /// Forgets claims older than a minute. Times are the server's.
    void begin(WallTime now);
    /// Adds a workspace of a list. `created_at` in RFC 3339 and UTC; `ms`: its claim's time.
    void saw(const std::string& id, const std::string& created_at, std::optional<double> ms);
    /// Sets the time of its claim; nullopt: the time is unknown and is not asked for again.
    void measured(const std::string& id, std::optional<double> ms);
    /// The youngest claim whose time is not known yet; empty if there is none.
    std::string unmeasured() const;
    ClaimFigures figures() const;

private:
    struct Claim {
        std::string created_at;
        std::optional<double> ms = {};
        bool asked = false;
    };
    std::string oldest_;  ///< RFC 3339 of one form sorts as text
    std::map<std::string, Claim> claims_;
};

}  // namespace hearth::cli
