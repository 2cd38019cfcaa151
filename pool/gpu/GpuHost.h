#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hearth::pool {

/// One device that can be given to a sandbox: a whole GPU, or a MIG instance of one.
struct GpuDevice {
    std::string uuid;     ///< see isGpuUuid(); the same over restarts
    std::string product;  ///< the driver's name for it: "NVIDIA H100 80GB HBM3"
    std::uint64_t memory_bytes = 0;
    std::string parent = {};   ///< for a MIG instance the uuid of its GPU; else empty
    std::string profile = {};  ///< for a MIG instance: "1g.10gb"; else empty
    bool split = false;        ///< in MIG mode: its instances are given out, never itself
    std::string fault = {};    ///< why it must not be given out now, in words; empty: healthy

    bool operator==(const GpuDevice&) const = default;
};

/// The result of a scrub of a device.
struct GpuScrub {
    bool clean = false;
    std::string why = {};     ///< if not clean: one line for an operator
    std::uint64_t bytes = 0;  ///< bytes of the device's memory, overwritten and read back
    bool unknown = false;     ///< if not clean: no scrub has ended, so nothing is known
};

/// Shows which records of scrubs still count.
struct GpuTenure {
    std::string before = {};  ///< names this server's last start; empty if others may have had the
                              ///< devices since then, or the machine was off
    std::string now = {};     ///< names this start
};

/// The GPUs of this machine. Thread-safe.
class GpuHost {
public:
    virtual ~GpuHost() = default;

    /// Returns the devices as last seen, without asking them: never blocks.
    virtual std::vector<GpuDevice> devices() const = 0;
    /// Returns why there are none, in one line for an operator; empty if there are some.
    virtual std::string absence() const = 0;
    /// Stays the same for the life of the process.
    virtual GpuTenure tenure() const { return {}; }
    /// Makes sure that nothing of the last user is left on the device: no process, and memory
    /// overwritten and read back. Blocks up to minutes; never throws, a failure is not clean.
    virtual GpuScrub scrub(const std::string& uuid) = 0;
    /// Ends every scrub as unknown, and looks no more. Does not wait for a driver.
    virtual void stop() noexcept {}
};

/// A machine without GPUs.
class NoGpus final : public GpuHost {
public:
    explicit NoGpus(std::string absence) : absence_(std::move(absence)) {}
    std::vector<GpuDevice> devices() const override { return {}; }
    std::string absence() const override { return absence_; }
    GpuScrub scrub(const std::string& /*uuid*/) override { return {false, absence_, 0}; }

private:
    std::string absence_;
};

}  // namespace hearth::pool
