#include "api/cli/top/ClaimWindow.h"

#include <algorithm>
#include <vector>

namespace hearth::cli {
namespace {

constexpr std::chrono::seconds kWindow{60};

}  // namespace

void ClaimWindow::begin(WallTime now) {
    oldest_ = formatRfc3339(now - kWindow);
    std::erase_if(claims_, [this](const auto& one) { return one.second.created_at < oldest_; });
}

void ClaimWindow::saw(const std::string& id, const std::string& created_at,
                      std::optional<double> ms) {
    if (created_at < oldest_) return;
    Claim& claim = claims_.try_emplace(id, Claim{created_at}).first->second;
    if (ms) claim.ms = ms;
}

void ClaimWindow::measured(const std::string& id, std::optional<double> ms) {
    const auto found = claims_.find(id);
    if (found == claims_.end()) return;
    found->second.asked = true;
    if (ms) found->second.ms = ms;
}

std::string ClaimWindow::unmeasured() const {
    std::string id;
    std::string youngest;
    for (const auto& [name, claim] : claims_) {
        if (claim.ms || claim.asked || claim.created_at < youngest) continue;
        id = name;
        youngest = claim.created_at;
    }
    return id;
}

ClaimFigures ClaimWindow::figures() const {
    std::vector<double> times;
    for (const auto& [id, claim] : claims_) {
        if (claim.ms) times.push_back(*claim.ms);
    }
    ClaimFigures out;
    out.per_second = static_cast<double>(claims_.size()) / static_cast<double>(kWindow.count());
    out.measured = times.size();
    if (times.empty()) return out;
    std::ranges::sort(times);
    out.median_ms = times[(times.size() - 1) / 2];
    out.worst_ms = times.back();
    return out;
}

}  // namespace hearth::cli
