#pragma once

#include "api/command/Command.h"

namespace hearth::cli {

/// `hearth top`: a live overview in a terminal, or as text with --once and in a pipe.
Command makeTop();

}  // namespace hearth::cli
