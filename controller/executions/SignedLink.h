#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/Clock.h"

namespace hearth::controller {

/// The target of a signed link: a file of a workspace, or a collected artifact, until a time. The
/// link's holder needs no token.
struct SignedLink {
    std::string tenant;
    std::string workspace;
    std::string path;
    std::string artifact;  ///< the name of a collected copy; empty: the file itself
    std::int64_t expires_unix = 0;
};

/// The name in a link, which a browser uses to save the file: derived from the signed path, so that
/// the signature covers it too.
std::string linkName(std::string_view path);
/// The link as "/v1/links/TOKEN/NAME"; NAME is linkName() of its path.
std::string linkPath(std::string_view secret_key, const SignedLink& link);
/// Reads the content of the token. Throws Error(Forbidden) if this server did not sign it,
/// Error(Gone) if it has expired.
SignedLink readLink(std::string_view secret_key, std::string_view token, WallTime now);

}  // namespace hearth::controller
