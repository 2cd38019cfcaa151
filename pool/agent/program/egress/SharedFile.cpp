#include "pool/agent/program/egress/SharedFile.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "base/Fd.h"

namespace hearth::agent {
namespace {

bool writeAll(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

}  // namespace

bool writeShared(const std::string& path, std::initializer_list<std::string_view> parts) {
    const std::string fresh = path + ".new";
    const Fd fd(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!fd || fchmod(fd.get(), 0644) != 0) return false;
    for (const std::string_view part : parts) {
        if (!writeAll(fd.get(), part)) return false;
    }
    return std::rename(fresh.c_str(), path.c_str()) == 0;
}

}  // namespace hearth::agent
