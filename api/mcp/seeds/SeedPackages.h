#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/mcp/seeds/SeedToolkit.h"

namespace hearth::mcp::seeds {

/// Turns the state of packages into a seed's result.
using TellPackages =
    std::function<ToolResult(const controller::PackagesView&, const controller::ExecutionView&)>;

/// Installs packages; answers when that is done or, with `wait`, after that time at the latest.
/// Without a network the image's packages count as installed if they fit the request. A started
/// install is noted on the workspace, so that installNoted() finds it.
ToolOutcome installPackages(const controller::Services& services, const CallContext& call,
                            const std::string& workspace, const std::vector<std::string>& specs,
                            std::optional<std::chrono::milliseconds> wait, TellPackages tell);
/// Looks packages up in the environment itself.
ToolOutcome checkPackages(const controller::Services& services, const CallContext& call,
                          const std::string& workspace, const std::vector<std::string>& specs,
                          TellPackages tell);

/// The last install of a package in a workspace. A label of the workspace and an execution keep it,
/// and both survive a restart of the server.
struct NotedInstall {
    std::shared_ptr<controller::Execution> execution;
    double elapsed_seconds = 0;
};
std::optional<NotedInstall> installNoted(const controller::Services& services,
                                         const CallContext& call, const std::string& workspace,
                                         const std::string& spec);

/// Returns why packages failed, in one line; untrusted text.
std::string packageFault(const controller::PackagesView& view);
/// Returns the name in a specifier, as checkPackages() returns it; the text itself if it has none.
std::string nameIn(const std::string& spec);

}  // namespace hearth::mcp::seeds
