#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "pool/image/Layout.h"

namespace hearth::pool::image {

/// The limits of one unpacking.
struct UnpackLimits {
    std::uint64_t bytes = 32ULL << 30U;      ///< on disk, all files together
    std::uint64_t file_bytes = 8ULL << 30U;  ///< one file
    std::uint64_t entries = 1'000'000;
    std::size_t layers = 256;
    int depth = 128;
    std::uint64_t disk_reserve = 256ULL << 20U;  ///< must stay free for others
    std::chrono::seconds time{540};
};

/// Called from time to time with the bytes in the tree so far.
using Unpacked = std::function<void(std::uint64_t bytes)>;

/// Unpacks the layers of the layout at `path` into `tree`, which is created. umoci does the work as
/// a user that exists nowhere else, without power over the host: in its own namespaces (user,
/// mount, network, IPC) it sees programs and libraries, the layout (read-only) and the tree, and
/// can write only to the tree. Its result belongs to that user and cannot be trusted: see
/// lintRootfs() and hardenRootfs(). Throws Error(DiskFull), Error(InvalidArgument) if it exceeds
/// the limits or cannot be unpacked, Error(Deadline), Error(Unsupported) without umoci. On failure
/// the caller removes the tree. Only for root in a process with one thread.
void unpackLayers(const std::string& path, const Layout& layout, const std::string& tree,
                  const UnpackLimits& limits, const Unpacked& told = {});

/// Throws Error(DiskFull) if less than `reserve` is free on the file system of `path`.
void requireFree(const std::string& path, std::uint64_t reserve);

}  // namespace hearth::pool::image
