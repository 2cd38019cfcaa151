#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/Texts.h"
#include "controller/contract/Principal.h"

namespace hearth::controller {

/// Free: scrubbed, and nobody's. Leased: of one or more sandboxes. Scrubbing: its last user has
/// gone, or nobody knows who had it. Faulty: the driver reports a fault. Condemned: its scrub has
/// failed, and an operator must look. Split: in MIG mode, so its instances are given out. Gone: the
/// driver does not show it any more.
enum class GpuState : std::uint8_t { Free, Leased, Scrubbing, Faulty, Condemned, Split, Gone };
inline constexpr Texts<GpuState, 7> kGpuStates{
    {"Free", "Leased", "Scrubbing", "Faulty", "Condemned", "Split", "Gone"}};

/// A sandbox that has a device.
struct GpuHolder {
    std::string sandbox;
    std::string pool;
    std::string workspace = {};  ///< empty: nobody has claimed it
    std::string tenant = {};
};

struct GpuView {
    std::string uuid;
    std::string product;
    std::uint64_t memory_bytes = 0;
    std::string parent;   ///< of a MIG instance: its GPU
    std::string profile;  ///< likewise
    GpuState state = GpuState::Free;
    std::string reason;  ///< why it is Faulty or Condemned
    std::vector<GpuHolder> holders;
};

/// Devices of one product, as everybody may know them.
struct GpuProduct {
    std::string product;
    std::string profile;  ///< of MIG instances
    std::uint64_t memory_bytes = 0;
    std::uint32_t count = 0;
};

/// The GPUs of the server's machine. Operators see all; others only the products. Thread-safe.
class Gpus {
public:
    virtual ~Gpus() = default;
    /// By uuid. Throws Error(Forbidden).
    virtual std::vector<GpuView> list(const Principal& who) const = 0;
    /// Throws Error(NotFound).
    virtual GpuView get(const Principal& who, const std::string& uuid) const = 0;
    /// Scrubs a condemned device again, which is then given out if that succeeds. Answers before
    /// the scrub begins. Throws Error(NotFound); Conflict where it is not condemned.
    virtual GpuView scrub(const Principal& who, const std::string& uuid) = 0;
    /// The devices that can be given out at all: none that is Split or Gone.
    virtual std::vector<GpuProduct> products() const = 0;
};

}  // namespace hearth::controller
