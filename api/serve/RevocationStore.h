#pragma once

#include <deque>
#include <set>
#include <string>
#include <string_view>

#include "api/mcp/protocol/SessionRevocations.h"
#include "base/Mutex.h"
#include "controller/journal/Journal.h"

namespace hearth::program {

/// The last kMost revocations: looked up in memory, kept in the journal. Thread-safe.
class RevocationStore final : public mcp::SessionRevocations {
public:
    static constexpr std::size_t kMost = 10'000;

    /// Loads the revocations in the journal.
    explicit RevocationStore(controller::Journal& journal);

    bool contains(std::string_view session) const override;
    void add(const std::string& session) override;

private:
    void remember(const std::string& session) HEARTH_REQUIRES(mutex_);

    controller::Journal& journal_;
    mutable Mutex mutex_;
    std::set<std::string, std::less<>> sessions_ HEARTH_GUARDED_BY(mutex_);
    std::deque<std::string> order_ HEARTH_GUARDED_BY(mutex_);  ///< sessions_, oldest first
};

}  // namespace hearth::program
