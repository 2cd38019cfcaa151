#pragma once

#include <functional>
#include <string>

#include "api/cli/remote/Remote.h"
#include "api/cli/remote/RemotePath.h"
#include "api/command/Command.h"

namespace hearth::cli {

/// How `hearth cp` copies.
struct CopyOptions {
    bool follow = false;  ///< local links become what they lead to
    bool tar = false;     ///< `-` is a tar, to be unpacked or made
    /// Hears of each thing that was not copied.
    std::function<void(const std::string& name, const std::string& why)> left_out;
};

/// Each copies one path and returns how many entries it left out. `-` is standard input or output.
/// A directory is copied into an existing one under its own name, as with `cp -r`; `DIR/.` means
/// its contents. Throw RemoteError, UsageError, Error and system_error.
std::uint64_t copyIn(Remote& remote, const std::string& local, const RemotePath& to,
                     const CopyOptions& options);
std::uint64_t copyOut(Remote& remote, const RemotePath& from, const std::string& local,
                      const CopyOptions& options);

Command makeCopy();

}  // namespace hearth::cli
