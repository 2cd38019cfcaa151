#pragma once

#include <string>

#include "base/Error.h"

namespace hearth::pool::image {

/// Returns the error of a failed fetch, from the output of the fetching program (skopeo, dockerd):
/// Unavailable if no registry answers, NotFound if it has no such image or hides it, DiskFull, else
/// InvalidArgument. `reason`: the part of `said` that a client may see.
Error pullFailure(const std::string& reference, const std::string& said, const std::string& reason);

}  // namespace hearth::pool::image
