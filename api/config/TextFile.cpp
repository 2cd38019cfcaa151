#include "api/config/TextFile.h"

#include <fcntl.h>

#include <array>
#include <cerrno>

#include "api/command/Options.h"
#include "base/Error.h"
#include "base/Fd.h"
#include "base/Units.h"

namespace hearth::cli {

std::string readToEnd(int fd, const std::string& name, std::size_t limit) {
    std::string text;
    std::array<char, 65536> piece{};
    while (true) {
        const ssize_t got = ::read(fd, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throwErrno("read", name);
        if (got == 0) return text;
        text.append(piece.data(), static_cast<std::size_t>(got));
        if (text.size() > limit) {
            throw UsageError(name + " is larger than " + formatBytes(limit), "give a smaller one");
        }
    }
}

std::string readTextFile(const std::string& path, std::size_t limit) {
    if (path == "-") return readToEnd(0, "standard input", limit);
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) throwErrno("open", path);
    return readToEnd(fd.get(), path, limit);
}

}  // namespace hearth::cli
