#pragma once

#include <set>
#include <string>

#include "api/mcp/protocol/SessionRevocations.h"
#include "base/Mutex.h"

namespace hearth::test {

/// Revocations in memory.
class FakeRevocations final : public mcp::SessionRevocations {
public:
    bool contains(std::string_view session) const override {
        const MutexLock lock(mutex_);
        return sessions_.contains(session);
    }
    void add(const mcp::Revocation& revocation) override {
        const MutexLock lock(mutex_);
        sessions_.insert(revocation.session);
    }

private:
    mutable Mutex mutex_;
    std::set<std::string, std::less<>> sessions_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::test
