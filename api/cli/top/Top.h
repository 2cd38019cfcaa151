#pragma once

#include "api/command/Command.h"

namespace hearth::cli {

/// `hearth top`: a live overview in a terminal, or with --once and in a pipe its text.
Command makeTop();

}  // namespace hearth::cli
