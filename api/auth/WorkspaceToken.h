#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth::auth {

/// Prefix of every token of this kind.
inline constexpr std::string_view kWorkspaceTokenPrefix = "hws_";

/// The one workspace, of one tenant, to which a token gives access.
struct WorkspaceGrant {
    std::string tenant;
    std::string workspace;
};

/// A token that is valid for one workspace, while that workspace lives. It is signed, not stored:
/// every replica with the same secret key accepts it, and nothing has to be kept or revoked.
std::string workspaceToken(std::string_view secret_key, const WorkspaceGrant& grant);

/// nullopt for a token that this key did not sign; the comparison takes constant time.
std::optional<WorkspaceGrant> readWorkspaceToken(std::string_view secret_key,
                                                 std::string_view token);

}  // namespace hearth::auth
