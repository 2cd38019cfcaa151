#include "base/CrashPoint.h"

#ifdef HEARTH_CRASH_POINTS
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace hearth {

void crashPoint(std::string_view name) {
    const char* wanted = std::getenv("HEARTH_CRASH_AT");
    if (wanted != nullptr && name == wanted) ::kill(::getpid(), SIGKILL);
}

}  // namespace hearth
#endif
