#pragma once

#include <string>

#include "base/Error.h"

namespace hearth::pool::image {

/// Why an image could not be had from its registry, told from the words of who tried (skopeo,
/// dockerd): Unavailable where no registry answers, NotFound where it has no such image or shows it
/// to nobody, DiskFull, else InvalidArgument. `reason`: the part of `said` that a client may see.
Error pullFailure(const std::string& reference, const std::string& said, const std::string& reason);

}  // namespace hearth::pool::image
