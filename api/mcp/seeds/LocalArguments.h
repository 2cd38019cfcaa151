#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/mcp/protocol/JsonRpc.h"

namespace hearth::mcp::seeds {

/// An argument of a seed's tool that is a path on the user's own disk, and the copy it asks for. A
/// server answers such a call with a URL; the stdio bridge, which runs where the disk is, copies.
struct LocalArgument {
    enum class Direction { Put, Get };  ///< into the sandbox, out of it
    enum class Kind { File, Tree };     ///< a tree is moved as a tar: …/archive
    std::string_view seed;
    std::string_view tool;
    std::string_view argument;
    Direction direction;
    Kind kind;
    std::string_view remote;          ///< the argument with the path in the sandbox
    std::string_view remote_default;  ///< if that is left out; "": the local path's own name
    bool into_directory;              ///< the remote path is a directory that gets the file
};

/// Returns a tool's local argument; nullptr if it has none: the call goes to the server as it is.
const LocalArgument* localArgument(std::string_view seed, std::string_view tool);

/// The paths of one copy.
struct LocalMove {
    std::string workspace;
    std::string local;
    std::string remote;  ///< relative to the workspace's root, or absolute beneath it
};
/// Reads the paths from the arguments; nullopt if they name no local path, or no workspace.
std::optional<LocalMove> localMove(const LocalArgument& which, const Json& arguments);
/// Returns the tool's result after the copy: `local` is the path that was written or read, `bytes`
/// the size of the file.
Json localResult(const LocalArgument& which, const LocalMove& move, const std::string& local,
                 std::uint64_t bytes);

}  // namespace hearth::mcp::seeds
