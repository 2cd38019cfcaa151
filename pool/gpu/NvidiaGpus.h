#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/Fd.h"
#include "base/Mutex.h"
#include "pool/gpu/GpuHelper.h"
#include "pool/gpu/GpuHost.h"
#include "pool/gpu/GpuMessages.h"

namespace hearth::pool {

/// The intervals and time limits of looks at a machine's GPUs.
struct GpuOptions {
    gpu::HelperOptions helper;
    std::chrono::milliseconds look_every{3'000};
    std::chrono::milliseconds absent_look_every{60'000};  ///< while there are no GPUs
    std::chrono::milliseconds look_limit{10'000};         ///< after it, the driver does not answer
    std::chrono::milliseconds give_up_look{
        60'000};  ///< after it, its program is killed and started anew
    std::chrono::milliseconds scrub_timeout{300'000};
};

/// NVIDIA's GPUs, through programs that load the driver's libraries (GpuHelper). A thread asks one
/// of them for a look every few seconds and keeps the last picture. Thread-safe.
class NvidiaGpus final : public GpuHost {
public:
    /// `helper`: from GpuHelper::start(). Returns after the first look, or after look_limit.
    NvidiaGpus(const GpuOptions& options, gpu::GpuHelper::Started helper, GpuTenure tenure = {});
    /// Does not wait for a driver: hanging programs are killed, and end when the driver lets them.
    ~NvidiaGpus() override;

    std::vector<GpuDevice> devices() const override;
    std::string absence() const override;
    GpuTenure tenure() const override { return tenure_; }
    /// Gives up after scrub_timeout, and at stop().
    GpuScrub scrub(const std::string& uuid) override;

    /// Looks now. False if the look has not ended within `limit`: then the picture is the last one.
    bool refresh(std::chrono::milliseconds limit);
    /// Keeps the last picture.
    void stop() noexcept override;

private:
    using Program = std::optional<gpu::GpuProgram>;

    void watch();
    bool lookOnce(Program& program);
    gpu::GpuProgram::Heard awaitLate(gpu::GpuProgram& program, std::string& line);
    void publish(const gpu::GpuLook& look);
    void publishFailure(const std::string& why, bool ended);
    void endLook() HEARTH_REQUIRES(mutex_);
    bool pause();
    std::string unfitForScrub(const std::string& uuid) const;
    GpuScrub runScrub(const std::string& uuid);
    std::string afterScrub(const std::string& uuid);

    const GpuOptions options_;
    const GpuTenure tenure_;
    gpu::GpuHelper helper_;
    const Fd stopping_;  ///< an eventfd, never read: readable after stop()
    mutable Mutex mutex_;
    Condition changed_;
    bool stopped_ HEARTH_GUARDED_BY(mutex_) = false;
    bool asked_ HEARTH_GUARDED_BY(mutex_) = false;
    std::uint64_t begun_ HEARTH_GUARDED_BY(mutex_) = 0;  ///< number of begun looks
    std::uint64_t ended_ HEARTH_GUARDED_BY(mutex_) = 0;  ///< the last look that was answered
    std::vector<GpuDevice> devices_ HEARTH_GUARDED_BY(mutex_);
    std::string absence_ HEARTH_GUARDED_BY(mutex_);
    std::map<std::string, std::string> lasting_ HEARTH_GUARDED_BY(mutex_);
    std::set<std::string> scrubbed_ HEARTH_GUARDED_BY(mutex_);  ///< in a scrub now, by uuid
    std::string silent_since_;  ///< for the watcher: the start of the first unanswered look
    std::jthread watcher_;
};

/// Returns the GPUs of this machine; NoGpus if the options say not to look for any.
std::unique_ptr<GpuHost> makeGpuHost(const GpuOptions& options, gpu::GpuHelper::Started helper,
                                     GpuTenure tenure = {});

}  // namespace hearth::pool
