#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/kubernetes/ObjectStatus.h"
#include "base/Json.h"
#include "controller/contract/Workspaces.h"

namespace hearth::kubernetes {

/// The label with the uid of the object that asked for a workspace. A server that has never seen
/// the object finds by it that the object is gone.
inline constexpr const char* kObjectLabel = "hearth.dev/object";

/// The workspace that a Workspace object asks for.
struct WorkspaceWish {
    std::string tenant;
    controller::WorkspaceRequest request;  ///< keyed by the object's uid
};
/// Reads an object's wish. Throws Error(InvalidArgument) or Error(InvalidSpec), naming the fields.
WorkspaceWish wishOf(const Json& object, std::string_view secret_key);

/// The content of the Secret for the workspace's user.
struct WorkspaceAccessText {
    std::string url;
    std::string workspace;
    std::string token;
};

/// Returns that Secret's name. It cannot be guessed, so no other Secret can be put there before.
std::string secretName(const Json& object, std::string_view secret_key);
/// Returns the Secret itself. It is deleted with the object.
Json secretOf(const Json& object, const std::string& name, const WorkspaceAccessText& text);

/// Returns the status of an object whose claim waits, or is refused.
Json pendingStatus(const Json& object, const Refusal& why, const std::string& now);
/// Returns the status of an object that has a workspace.
Json claimedStatus(const Json& object, const controller::WorkspaceView& view,
                   const std::string& url, const std::string& secret, const std::string& now);
/// Returns the status after the workspace's end, which is final.
Json endedStatus(const Json& object, const std::string& why, const std::string& now);

/// Returns events for the changes in `now`: the claim, another reason to wait, and the end, one
/// each, however often the claim is tried.
std::vector<Json> workspaceEvents(const Json& object, const Json& before, const Json& now,
                                  const std::string& time);

}  // namespace hearth::kubernetes
