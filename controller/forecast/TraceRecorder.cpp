#include "controller/forecast/TraceRecorder.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/Fd.h"

namespace hearth::controller {

std::string traceLine(WallTime arrival) {
    return formatRfc3339(arrival) + "\n";
}

bool TraceRecorder::record(const std::string& pool, WallTime at, std::uint64_t claims) const {
    if (directory_.empty() || claims == 0) return true;
    const std::string path = directory_ + "/" + pool + ".trace";
    const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
    if (file.get() < 0) return false;
    std::string lines;
    const std::string line = traceLine(at);
    for (std::uint64_t i = 0; i < claims; ++i) lines += line;
    return ::write(file.get(), lines.data(), lines.size()) == static_cast<ssize_t>(lines.size());
}

}  // namespace hearth::controller
