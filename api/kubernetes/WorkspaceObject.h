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

/// The label of a workspace that an object asked for: the object's uid. By it a server that has
/// never seen the object finds that it has gone.
inline constexpr const char* kObjectLabel = "hearth.dev/object";

/// What a Workspace object asks for.
struct WorkspaceWish {
    std::string tenant;
    controller::WorkspaceRequest request;  ///< keyed by the object's uid
};
/// Throws Error(InvalidArgument) or Error(InvalidSpec) that names the fields.
WorkspaceWish wishOf(const Json& object, std::string_view secret_key);

/// What its user is told by a Secret.
struct WorkspaceAccessText {
    std::string url;
    std::string workspace;
    std::string token;
};

/// The name of that Secret. Nobody can know it before it is there, and put another in its place.
std::string secretName(const Json& object, std::string_view secret_key);
/// The Secret itself. It goes with the object.
Json secretOf(const Json& object, const std::string& name, const WorkspaceAccessText& text);

/// The status of an object whose claim waits, or is refused.
Json pendingStatus(const Json& object, const Refusal& why, const std::string& now);
/// The status of an object that has a workspace.
Json claimedStatus(const Json& object, const controller::WorkspaceView& view,
                   const std::string& url, const std::string& secret, const std::string& now);
/// The status after the workspace's end, which is final.
Json endedStatus(const Json& object, const std::string& why, const std::string& now);

/// Events of what is new in `now`: of its claim, of another reason to wait, and of its end, one
/// each, however often the claim is tried.
std::vector<Json> workspaceEvents(const Json& object, const Json& before, const Json& now,
                                  const std::string& time);

}  // namespace hearth::kubernetes
