#pragma once

#include <initializer_list>
#include <string>

#include "base/Error.h"

namespace hearth::pool::image {

/// True if a program's output has one of these texts in it.
bool holdsOneOf(const std::string& said, std::initializer_list<const char*> words);

/// Why an image could not be fetched, from the output of the fetching program (skopeo, dockerd):
/// Unavailable if no registry answers, NotFound if it has no such image or hides it, DiskFull, else
/// InvalidArgument. `reason`: the part of `said` that a client may see.
Error pullFailure(const std::string& reference, const std::string& said, const std::string& reason);

}  // namespace hearth::pool::image
