#include "controller/reconcile/OpenFilesWatch.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

namespace hearth::controller {
namespace {

constexpr auto kCalm = std::chrono::milliseconds(500);
/// A processor opens some 100,000 files in this time.
constexpr auto kFilling = std::chrono::milliseconds(100);
/// A sandbox that resists its end must not protect the next one for longer.
constexpr auto kClosing = std::chrono::seconds(5);
// Shares of the table. A tenant with less than the last one is not what fills it.
constexpr std::uint64_t kWatched = 4;
constexpr std::uint64_t kScarce = 2;
constexpr std::uint64_t kOwnShare = 8;

/// A tenant's sandboxes together, and the largest of them.
struct Holding {
    std::uint64_t files = 0;
    std::uint64_t most = 0;
    std::shared_ptr<Workspace> largest{};
};

}  // namespace

ReconcileResult OpenFilesWatch::look() {
    const std::optional<FileTable> table = runtime_.fileTable();
    if (!table) return ReconcileResult::settled();
    if (table->open < table->most / kWatched) return ReconcileResult::after(kCalm);
    if (table->open >= table->most / kScarce && !closing()) endLargest(*table);
    return ReconcileResult::after(kFilling);
}

bool OpenFilesWatch::closing() const {
    return warm_.find(ended_) && history_.clock.now() - ended_at_ < kClosing;
}

void OpenFilesWatch::endLargest(const FileTable& table) {
    std::map<std::string, Holding> tenants;
    for (const auto& [sandbox, files] : runtime_.openFiles()) {
        std::shared_ptr<Workspace> workspace = table_.bySandbox(sandbox);
        if (!workspace || workspace->endReason()) continue;
        Holding& holding = tenants[workspace->facts().tenant];
        holding.files += files;
        if (files < holding.most) continue;
        holding.most = files;
        holding.largest = std::move(workspace);
    }
    const auto largest =
        std::ranges::max_element(tenants, {}, [](const auto& entry) { return entry.second.files; });
    if (largest == tenants.end() || largest->second.files < table.most / kOwnShare) return;
    const Holding& holding = largest->second;
    const WorkspaceFacts& facts = holding.largest->facts();
    history_.log.warn("workspace.open_files", {{"workspace", facts.id},
                                               {"tenant", facts.tenant},
                                               {"files", holding.most},
                                               {"tenant_files", holding.files},
                                               {"machine_files", table.open},
                                               {"machine_limit", table.most}});
    ended_ = facts.sandbox;
    ended_at_ = history_.clock.now();
    terminator_.end(holding.largest, EndReason::OpenFiles);
}

}  // namespace hearth::controller
