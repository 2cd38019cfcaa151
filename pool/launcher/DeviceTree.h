#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pool/launcher/gpu/GpuParts.h"

namespace hearth::pool::launcher {

/// Mounts a /dev of one sandbox at `at`, in the caller's mount namespace: nodes, links and the
/// folders that are mounted over. Only root can write to it. The nodes of its GPUs belong to its
/// tenant, their folders to its own root, whose hooks may add links; `uid_first` is that root.
void mountDevices(const std::string& at, const std::vector<GpuNode>& gpus, std::uint32_t uid_first);

}  // namespace hearth::pool::launcher
