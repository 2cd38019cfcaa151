#pragma once

#include <optional>

#include "api/http/Handler.h"

namespace hearth::console {

/// Answers GET and HEAD of `/console/NAME`, and of `/` for clients that ask for HTML; nullopt for
/// all other requests. The files are the same for everybody, so they need no authentication: the
/// data that they show comes from the API, with the user's token.
std::optional<api::Response> consolePage(api::Request& request);

}  // namespace hearth::console
