#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/Mutex.h"

namespace hearth {

/// Counts the bytes of the server's memory that are kept for each tenant, and limits them.
/// Thread-safe; a taken object may outlive this one.
class TenantBytes {
public:
    explicit TenantBytes(std::uint64_t most) : most_(most) {}

    /// Counts the bytes while the returned object lives; null if the tenant would have too many.
    std::shared_ptr<void> take(const std::string& tenant, std::uint64_t bytes) const {
        return add(tenant, bytes, most_);
    }
    /// The same for bytes that exist already; never refused.
    std::shared_ptr<void> takeAnyway(const std::string& tenant, std::uint64_t bytes) const {
        return add(tenant, bytes, UINT64_MAX);
    }
    std::uint64_t most() const { return most_; }

private:
    struct Counts {
        Mutex mutex;
        std::map<std::string, std::uint64_t> of HEARTH_GUARDED_BY(mutex);
    };

    std::shared_ptr<void> add(const std::string& tenant, std::uint64_t bytes,
                              std::uint64_t most) const {
        if (bytes == 0) return counts_;  // any pointer that is not null
        const MutexLock lock(counts_->mutex);
        const auto found = counts_->of.find(tenant);
        const std::uint64_t held = found == counts_->of.end() ? 0 : found->second;
        if (held > most || bytes > most - held) return nullptr;
        counts_->of[tenant] = held + bytes;
        // Only its deleter matters; it points at something so that it is not null.
        return {counts_.get(), [counts = counts_, tenant, bytes](void*) {
                    const MutexLock giving(counts->mutex);
                    const auto own = counts->of.find(tenant);
                    if ((own->second -= bytes) == 0) counts->of.erase(own);
                }};
    }

    const std::uint64_t most_;
    const std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

}  // namespace hearth
