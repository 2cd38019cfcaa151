#pragma once

#include <string>
#include <vector>

#include "api/cli/doctor/Finding.h"
#include "api/config/ServeConfig.h"
#include "pool/gpu/GpuHost.h"

namespace hearth::cli {

/// Checks this machine's GPUs as the server would. A machine without GPUs is no failure: pools
/// without GPUs work. Takes as long as the driver does, at most ten seconds.
Finding checkGpus(const ServeConfig& config);

/// Judges the devices found, or `absence`, the reason that there are none.
Finding judgeGpus(const std::vector<pool::GpuDevice>& devices, const std::string& absence);

}  // namespace hearth::cli
