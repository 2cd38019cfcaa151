#pragma once

#include <optional>

#include "api/http/Handler.h"

namespace hearth::console {

/// Answers GET and HEAD of `/console/NAME`, and of `/` for those who ask for HTML; nullopt for
/// everything else. The files are the same for everybody, so nobody is authenticated: what they
/// show comes from the API, with the user's token.
std::optional<api::Response> consolePage(api::Request& request);

}  // namespace hearth::console
