#pragma once

#include "api/cli/top/Screen.h"

namespace hearth::cli {

/// The lines of one opened workspace, without the first and the last line of the screen. May be
/// more lines than fit. Needs a Utf8Locale.
Screen detailLines(const Overview& seen, const WorkspaceDetail& detail, const std::string& id,
                   std::size_t columns, WallTime now);

}  // namespace hearth::cli
