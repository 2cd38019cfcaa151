#pragma once

#include "api/command/Command.h"

namespace hearth::cli {

Command makeDoctor();

}  // namespace hearth::cli
