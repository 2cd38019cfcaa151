#pragma once

#include <cstdint>
#include <string>

#include "pool/launcher/gpu/GpuParts.h"

namespace hearth::pool::launcher {

/// The places of a sandbox's root with GPUs. `tree` and `scratch` lie beside each other.
struct GpuRootPlaces {
    std::string tree;             ///< the image, shared by all its sandboxes, never written to
    std::string scratch;          ///< an empty folder; a small file system is mounted there
    std::string view;             ///< mount point of the sandbox's root
    std::uint32_t uid_first = 0;  ///< the sandbox's root: it may write to the view until sealed
};

/// Mounts an image as the root of one sandbox, in the caller's mount namespace, with the places
/// that the mounts of its GPUs need: missing ones are made in memory, for this sandbox only. Hooks
/// may write there, until sealMount(). Throws Error(Unsupported) if the image has something else at
/// such a place.
void mountGpuRoot(const GpuParts& parts, const GpuRootPlaces& places);

/// After this nobody can write to the file system at `at`, through any of its mounts.
void sealMount(const std::string& at, unsigned long flags);

}  // namespace hearth::pool::launcher
