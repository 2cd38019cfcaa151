#include "api/mcp/seeds/LocalArguments.h"

#include <algorithm>
#include <array>

#include "api/mcp/seeds/SeedPaths.h"

namespace hearth::mcp::seeds {
namespace {

using Direction = LocalArgument::Direction;
using Kind = LocalArgument::Kind;

constexpr std::array<LocalArgument, 4> kAll{{
    {"s0", "copy_file", "local_src_file", Direction::Put, Kind::File, "dest_path", "", false},
    {"s0", "copy_project", "local_src_dir", Direction::Put, Kind::Tree, "dest_dir", "", false},
    {"s0", "copy_file_from_sandbox", "local_dest_path", Direction::Get, Kind::File,
     "container_src_path", "", false},
    {"s1", "upload_file_to_sandbox", "local_file_path", Direction::Put, Kind::File, "dest_path",
     "/app/results", true},
}};

/// Returns the path in the form of the seed's own result.
std::string inSandbox(const std::string& remote) {
    return remote.starts_with('/') ? remote : "/workspace/" + remote;
}

}  // namespace

const LocalArgument* localArgument(std::string_view seed, std::string_view tool) {
    const auto found = std::find_if(kAll.begin(), kAll.end(), [&](const LocalArgument& one) {
        return one.seed == seed && one.tool == tool;
    });
    return found == kAll.end() ? nullptr : &*found;
}

std::optional<LocalMove> localMove(const LocalArgument& which, const Json& arguments) {
    const auto text = [&arguments](std::string_view name) {
        return stringMember(arguments, std::string(name)).value_or("");
    };
    LocalMove move;
    move.workspace = which.seed == "s1" ? text("sandbox_id") : text("workspace_id");
    if (move.workspace.empty()) move.workspace = text("container_id");
    move.local = text(which.argument);
    move.remote = text(which.remote);
    if (which.direction == Direction::Get) {
        if (move.remote.empty()) return std::nullopt;
        // The seed saved the file where its server ran; the bridge saves it where the bridge runs.
        if (move.local.empty()) move.local = baseName(move.remote);
    }
    if (move.workspace.empty() || move.local.empty()) return std::nullopt;
    if (move.remote.empty()) move.remote = which.remote_default;
    move.remote = pathInWorkspace(move.remote);
    if (move.remote.empty()) move.remote = baseName(move.local);
    if (which.into_directory) move.remote = joinedPath(move.remote, baseName(move.local));
    return move;
}

Json localResult(const LocalArgument& which, const LocalMove& move, const std::string& local,
                 std::uint64_t bytes) {
    if (which.direction == Direction::Get) {
        return {{"success", true}, {"local_path", local}, {"file_size", bytes}};
    }
    if (which.kind == Kind::Tree) {
        return {{"success", true}, {"dest_dir", inSandbox(move.remote)}};
    }
    if (which.seed == "s1") {
        return {{"success", true},
                {"message", local + " is uploaded to " + inSandbox(move.remote)}};
    }
    return {{"success", true}, {"file_path", inSandbox(move.remote)}};
}

}  // namespace hearth::mcp::seeds
