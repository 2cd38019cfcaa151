#include "pool/agent/program/egress/TrustFile.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/Fd.h"

namespace hearth::agent {
namespace {

/// The files of Debian and Alpine, Red Hat, SUSE, and one that others link to.
constexpr std::array<const char*, 4> kSystemFiles{"/etc/ssl/certs/ca-certificates.crt",
                                                  "/etc/pki/tls/certs/ca-bundle.crt",
                                                  "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};
/// The variables of OpenSSL and its users, Python's and AWS's clients, curl, git, pip. Node adds
/// the file to its own list.
constexpr std::array<const char*, 7> kVariables{
    "SSL_CERT_FILE",  "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE",      "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO", "PIP_CERT",           "NODE_EXTRA_CA_CERTS"};
/// A larger file is not a list of authorities; Debian's is 220 KB.
constexpr off_t kMostSystem = off_t{512} * 1024;

/// Reads only files that everybody may read there: an image must not make the agent reveal files
/// that only the agent can read.
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
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

/// Writes a file that everybody in the sandbox may read, whole or not at all. False if it cannot be
/// written.
bool writeShared(const std::string& path, std::initializer_list<std::string_view> parts) {
    const std::string fresh = path + ".new";
    const Fd fd(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!fd || fchmod(fd.get(), 0644) != 0) return false;
    for (const std::string_view part : parts) {
        if (!writeAll(fd.get(), part)) return false;
    }
    return std::rename(fresh.c_str(), path.c_str()) == 0;
}

}  // namespace

bool makeTrusted(const Settings& settings, std::string_view certificates,
                 std::map<std::string, std::string>& env) {
    const std::string path = settings.run + "/trust.pem";
    if (!writeShared(path, {systemAuthorities(), certificates})) return false;
    for (const char* name : kVariables) env.emplace(name, path);
    return true;
}

}  // namespace hearth::agent
