#include "pool/agent/program/Identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/Fd.h"

namespace hearth::agent {
namespace {

using Secret = secure::SecretBytes<crypto_scalarmult_SCALARBYTES>;

void complain(const char* what, const char* path) {
    std::fprintf(stderr, "hearth-agent: %s %s: %s\n", what, path, std::strerror(errno));
}

bool writeAll(const Fd& fd, const void* bytes, std::size_t size) {
    return fd && write(fd.get(), bytes, size) == static_cast<ssize_t>(size);
}

/// Reads exactly the secret, from a regular file that has no other link.
bool readSecret(const Fd& fd, Secret& secret) {
    struct stat st {};
    errno = EINVAL;
    return fd && fstat(fd.get(), &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
           st.st_size == static_cast<off_t>(Secret::kSize) &&
           read(fd.get(), secret.data(), Secret::kSize) == static_cast<ssize_t>(Secret::kSize);
}

}  // namespace

int makeIdentity(const char* path, const char* told) {
    if (!secure::initialise()) return 1;
    const secure::AgentIdentity identity = secure::AgentIdentity::generate();
    unlink(path);  // left by a start of this Pod that was cut short
    const Fd secret(open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!writeAll(secret, identity.secret().data(), Secret::kSize)) {
        complain("cannot write", path);
        return 1;
    }
    const std::string text = identity.publicKey().text();
    if (!writeAll(Fd(open(told, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)), text.data(),
                  text.size())) {
        complain("cannot write", told);
        return 1;
    }
    return 0;
}

std::optional<secure::AgentIdentity> takeIdentity(const char* path) {
    const Fd fd(open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    Secret secret;
    if (!secure::initialise() || !readSecret(fd, secret)) {
        complain("no identity in", path);
        return std::nullopt;
    }
    const Secret nothing;
    if (pwrite(fd.get(), nothing.data(), Secret::kSize, 0) < 0 || unlink(path) != 0) {
        complain("cannot remove", path);
        return std::nullopt;
    }
    return secure::AgentIdentity::load(
        {reinterpret_cast<const char*>(secret.data()), Secret::kSize});
}

}  // namespace hearth::agent
