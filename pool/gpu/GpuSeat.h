#pragma once

#include <string>

#include "base/Fd.h"
#include "base/host/Instance.h"
#include "pool/gpu/GpuHost.h"

namespace hearth::pool::gpu {

/// The right to a machine's GPUs, for one server only: two would lease the same devices. Held by a
/// lock beside the run_dirs, for the life of the process.
class GpuSeat {
public:
    /// Takes it, unless another server has it or has left sandboxes behind, which may have GPUs.
    /// `library`: the driver's; one that is given by its path has a separate seat. Throws
    /// std::system_error.
    static GpuSeat take(const Instance& instance, const std::string& library);

    bool taken() const { return lock_.get() >= 0; }
    /// Returns why it was not taken, in one line for an operator; empty if it was.
    const std::string& refusal() const { return refusal_; }
    const GpuTenure& tenure() const { return tenure_; }

private:
    Fd lock_;
    std::string refusal_;
    GpuTenure tenure_;
};

}  // namespace hearth::pool::gpu
