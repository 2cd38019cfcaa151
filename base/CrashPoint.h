#pragma once

#include <string_view>

namespace hearth {

/// Marks a place where a crash would hurt most. In builds with HEARTH_CRASH_POINTS the process ends
/// here as by kill -9 if the environment has `HEARTH_CRASH_AT=<name>`; else this does nothing. The
/// crash test finds the names by reading the source, so a new point without a test fails.
#ifdef HEARTH_CRASH_POINTS
void crashPoint(std::string_view name);
#else
inline void crashPoint(std::string_view) {}
#endif

}  // namespace hearth
