#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/mcp/protocol/SessionRevocations.h"
#include "base/Clock.h"
#include "base/Mutex.h"
#include "controller/journal/Journal.h"

namespace hearth::program {

/// Revocations until their sessions expire, at most kMost of each tenant: looked up in memory, kept
/// in the journal. A tenant that ends more loses those of its own that expire first. Thread-safe.
class RevocationStore final : public mcp::SessionRevocations {
public:
    static constexpr std::size_t kMost = 10'000;

    /// Loads the revocations in the journal.
    RevocationStore(controller::Journal& journal, const Clock& clock);

    bool contains(std::string_view session) const override;
    void add(const mcp::Revocation& revocation) override;

private:
    struct Row {
        std::string tenant;
        std::int64_t expiry_ms;
        std::string session;
    };

    /// Returns the rows that one more of this tenant replaces: expired ones, and its surplus.
    std::vector<Row> replacedBy(const std::string& tenant) const HEARTH_REQUIRES(mutex_);
    void remember(const Row& row) HEARTH_REQUIRES(mutex_);
    void forget(const Row& row) HEARTH_REQUIRES(mutex_);

    controller::Journal& journal_;
    const Clock& clock_;
    mutable Mutex mutex_;
    std::set<std::string, std::less<>> sessions_ HEARTH_GUARDED_BY(mutex_);
    /// The same by tenant: expiry and id.
    std::map<std::string, std::set<std::pair<std::int64_t, std::string>>> by_tenant_
        HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::program
