#pragma once

#include <string>

#include "api/http/FileAnswer.h"
#include "controller/Services.h"

namespace hearth::api {

/// The file at a path in a workspace. Throws as Workspaces does; Conflict if it is no file.
FileSource workspaceFile(const controller::Services& services, const controller::Principal& who,
                         const std::string& workspace, const std::string& path);

}  // namespace hearth::api
