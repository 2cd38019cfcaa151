#include "pool/agent/program/TrustFile.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>

#include "base/Fd.h"
#include "pool/agent/Frame.h"

namespace hearth::agent {
namespace {

/// Of Debian and Alpine, Red Hat, SUSE, and what others link to.
constexpr std::array<const char*, 4> kSystemFiles{"/etc/ssl/certs/ca-certificates.crt",
                                                  "/etc/pki/tls/certs/ca-bundle.crt",
                                                  "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};
/// What is larger is no list of authorities; Debian's is 220 KB.
constexpr off_t kMostSystem = 512 * 1024;

/// What everybody may read there anyhow: an image must not make us show what only we can read.
std::string systemAuthorities() {
    for (const char* path : kSystemFiles) {
        const Fd fd(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
        struct stat about {};
        if (!fd || fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode) ||
            (about.st_mode & S_IROTH) == 0 || about.st_size > kMostSystem) {
            continue;
        }
        std::string out(static_cast<std::size_t>(about.st_size), '\0');
        const ssize_t n = pread(fd.get(), out.data(), out.size(), 0);
        if (n <= 0) continue;
        out.resize(static_cast<std::size_t>(n));
        if (out.back() != '\n') out += '\n';
        return out;
    }
    return {};
}

bool writeAll(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

}  // namespace

bool writeTrustFile(std::string_view certificates) {
    const std::string fresh = std::string(kTrustFile) + ".new";
    const Fd fd(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
    return fd && fchmod(fd.get(), 0644) == 0 && writeAll(fd.get(), systemAuthorities()) &&
           writeAll(fd.get(), certificates) && std::rename(fresh.c_str(), kTrustFile) == 0;
}

}  // namespace hearth::agent
