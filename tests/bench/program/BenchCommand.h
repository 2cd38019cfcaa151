#pragma once

#include "api/command/Command.h"

namespace hearth::cli {

Command makeBench();

}  // namespace hearth::cli
