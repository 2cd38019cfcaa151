#pragma once

#include <string_view>

namespace hearth {

/// Where a crash would hurt most. In builds with HEARTH_CRASH_POINTS the process ends here like
/// kill -9 when the environment says `HEARTH_CRASH_AT=<name>`; otherwise this is nothing. The crash
/// test finds the names by reading the source, so a new point without a test fails.
#ifdef HEARTH_CRASH_POINTS
void crashPoint(std::string_view name);
#else
inline void crashPoint(std::string_view) {}
#endif

}  // namespace hearth
