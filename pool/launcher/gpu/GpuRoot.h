#pragma once

#include <cstdint>
#include <string>

#include "pool/launcher/gpu/GpuParts.h"

namespace hearth::pool::launcher {

/// The places of a sandbox's root with GPUs. `tree` and `scratch` lie beside each other.
struct GpuRootPlaces {
    std::string tree;             ///< the image, shared by all its sandboxes, never written to
    std::string scratch;          ///< an empty folder; a small file system is mounted there
    std::string view;             ///< where the sandbox's root is mounted
    std::uint32_t uid_first = 0;  ///< whose root may write to the view until it is sealed
};

/// Mounts an image as the root of one sandbox, in the caller's mount namespace, with the places
/// that the mounts of its GPUs need: what the image lacks is made in memory, for this sandbox only.
/// Hooks may write there, until sealGpuRoot(). Throws Error(Unsupported) where the image has
/// something else at such a place.
void mountGpuRoot(const GpuParts& parts, const GpuRootPlaces& places);

/// From now on nobody writes to the file system at `at`, whatever mount of it he has.
void sealMount(const std::string& at, unsigned long flags);

}  // namespace hearth::pool::launcher
