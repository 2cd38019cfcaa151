#pragma once

#include <functional>
#include <string>

#include "api/cli/remote/Remote.h"
#include "api/cli/remote/RemotePath.h"
#include "api/command/Command.h"

namespace hearth::cli {

/// The options of `hearth cp`.
struct CopyOptions {
    bool follow = false;  ///< copies the targets of local links
    bool tar = false;     ///< `-` is a tar, to unpack or to make
    /// Is called for each entry that was not copied.
    std::function<void(const std::string& name, const std::string& why)> left_out;
};

/// Each copies one path and returns the number of entries that it left out. `-` is standard input
/// or output. A directory is copied into an existing one under its own name, as with `cp -r`;
/// `DIR/.` means its contents. Throw RemoteError, UsageError, Error and system_error.
std::uint64_t copyIn(Remote& remote, const std::string& local, const RemotePath& to,
                     const CopyOptions& options);
std::uint64_t copyOut(Remote& remote, const RemotePath& from, const std::string& local,
                      const CopyOptions& options);

Command makeCopy();

}  // namespace hearth::cli
