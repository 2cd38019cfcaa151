#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/Mutex.h"
#include "pool/gpu/GpuHost.h"

namespace hearth::test {

/// Devices that a test declares. Counts scrubs, and fails those of chosen devices.
class FakeGpuHost final : public pool::GpuHost {
public:
    std::vector<pool::GpuDevice> devices() const override {
        const MutexLock lock(mutex_);
        return devices_;
    }
    std::string absence() const override { return "no GPU library was found"; }
    /// Each ledger is a new start of the one server that owns them.
    pool::GpuTenure tenure() const override {
        const MutexLock lock(mutex_);
        const std::string before = std::exchange(start_, start_ + "+");
        return {before, start_};
    }
    /// Acts as if another server had owned them since the last start.
    void lendOut() {
        const MutexLock lock(mutex_);
        start_ = "another";
    }
    pool::GpuScrub scrub(const std::string& uuid) override {
        const MutexLock lock(mutex_);
        ++scrubs_[uuid];
        const auto failure = failures_.find(uuid);
        if (failure != failures_.end()) return {false, failure->second, 0};
        if (silent_) return {false, "the driver does not answer", 0, true};
        return {true, {}, 1U << 20U};
    }

    void have(std::vector<pool::GpuDevice> devices) {
        const MutexLock lock(mutex_);
        devices_ = std::move(devices);
    }
    /// `why` empty: scrubs succeed again.
    void failScrubs(const std::string& uuid, const std::string& why) {
        const MutexLock lock(mutex_);
        failures_.erase(uuid);
        if (!why.empty()) failures_[uuid] = why;
    }
    /// Scrubs end without a result, as with a driver that does not answer.
    void fallSilent(bool silent) {
        const MutexLock lock(mutex_);
        silent_ = silent;
    }
    unsigned scrubs(const std::string& uuid) const {
        const MutexLock lock(mutex_);
        const auto found = scrubs_.find(uuid);
        return found == scrubs_.end() ? 0 : found->second;
    }

    /// Returns "GPU-" and a uuid that ends with the number.
    static std::string uuid(unsigned number, const std::string& kind = "GPU-") {
        const std::string digits = std::to_string(number);
        return kind + "00000000-0000-0000-0000-" + std::string(12 - digits.size(), '0') + digits;
    }
    static pool::GpuDevice device(unsigned number,
                                  const std::string& product = "NVIDIA H100 80GB HBM3") {
        return {uuid(number), product, 80ULL << 30U};
    }
    static std::vector<pool::GpuDevice> several(unsigned count) {
        std::vector<pool::GpuDevice> all;
        for (unsigned i = 1; i <= count; ++i) all.push_back(device(i));
        return all;
    }

private:
    mutable Mutex mutex_;
    mutable std::string start_ HEARTH_GUARDED_BY(mutex_) = "start";
    std::vector<pool::GpuDevice> devices_ HEARTH_GUARDED_BY(mutex_);
    std::map<std::string, std::string> failures_ HEARTH_GUARDED_BY(mutex_);
    bool silent_ HEARTH_GUARDED_BY(mutex_) = false;
    std::map<std::string, unsigned> scrubs_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::test
