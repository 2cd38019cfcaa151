#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/Texts.h"
#include "controller/contract/Principal.h"

namespace hearth::controller {

/// Free: scrubbed and unused. Leased: one or more sandboxes have it. Scrubbing: its last user has
/// gone, or its last user is not known. Faulty: the driver reports a fault. Condemned: its scrub
/// failed, and an operator must look. Split: in MIG mode, so its instances are given out. Gone: the
/// driver no longer shows it.
enum class GpuState : std::uint8_t { Free, Leased, Scrubbing, Faulty, Condemned, Split, Gone };
inline constexpr Texts<GpuState, 7> kGpuStates{
    {"Free", "Leased", "Scrubbing", "Faulty", "Condemned", "Split", "Gone"}};

/// A sandbox that has a device.
struct GpuHolder {
    std::string sandbox;
    std::string pool;
    std::string workspace = {};  ///< empty: not claimed
    std::string tenant = {};
};

struct GpuView {
    std::string uuid;
    std::string product;
    std::uint64_t memory_bytes = 0;
    std::string parent;   ///< a MIG instance's GPU
    std::string profile;  ///< a MIG instance's profile
    GpuState state = GpuState::Free;
    std::string reason;  ///< why it is Faulty or Condemned
    std::vector<GpuHolder> holders;
};

/// Devices of one product, as every caller may see them.
struct GpuProduct {
    std::string product;
    std::string profile;  ///< set for MIG instances
    std::uint64_t memory_bytes = 0;
    std::uint32_t count = 0;
};

/// The GPUs of the server's machine. Operators see all; others only the products. Thread-safe.
class Gpus {
public:
    virtual ~Gpus() = default;
    /// Sorted by uuid. Throws Error(Forbidden).
    virtual std::vector<GpuView> list(const Principal& who) const = 0;
    /// Throws Error(NotFound).
    virtual GpuView get(const Principal& who, const std::string& uuid) const = 0;
    /// Scrubs a condemned device again; if that succeeds, the device is given out again. Answers
    /// before the scrub begins. Throws Error(NotFound); Conflict if it is not condemned.
    virtual GpuView scrub(const Principal& who, const std::string& uuid) = 0;
    /// The devices that can be given out at all: none of them is Split or Gone.
    virtual std::vector<GpuProduct> products() const = 0;
};

}  // namespace hearth::controller
