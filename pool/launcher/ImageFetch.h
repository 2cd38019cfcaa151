#pragma once

#include <string>

#include "base/Json.h"
#include "pool/launcher/protocol/LauncherMessages.h"

namespace hearth::pool::launcher {

/// Fetches an image for a claim in a child of the launcher. Afterwards the child has no network
/// except the connections that the server accepts through `gateway`.
Json fetchImage(const std::string& data_dir, const FetchImageRequest& fetch, int gateway);

}  // namespace hearth::pool::launcher
