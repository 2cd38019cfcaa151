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
    std::size_t measured = 0;  ///< of how many the time is known
    double median_ms = 0;
    double worst_ms = 0;
};

/// The claims of the last minute, as far as lists of workspaces showed them: a workspace that ended
/// between two looks was never seen. A value type, not thread-safe.
class ClaimWindow {
public:
    /// Forgets what is older than a minute. Times are those of the server.
    void begin(WallTime now);
    /// A workspace that a list shows. `created_at` in RFC 3339 and UTC; `ms`: its claim's time.
    void saw(const std::string& id, const std::string& created_at, std::optional<double> ms);
    /// How long its claim took; nullopt: nobody can tell, and it is not asked for again.
    void measured(const std::string& id, std::optional<double> ms);
    /// The youngest claim whose time is not known yet; empty where there is none.
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
