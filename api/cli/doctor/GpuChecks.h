#pragma once

#include <string>
#include <vector>

#include "api/cli/doctor/Finding.h"
#include "api/config/ServeConfig.h"
#include "pool/gpu/GpuHost.h"

namespace hearth::cli {

/// Looks at this machine's GPUs as the server would. To have none is no failure: pools without GPUs
/// are as good. Takes as long as the driver does, at most ten seconds.
Finding checkGpus(const ServeConfig& config);

/// Judges what was found, or `absence`, the reason that there is nothing.
Finding judgeGpus(const std::vector<pool::GpuDevice>& devices, const std::string& absence);

}  // namespace hearth::cli
