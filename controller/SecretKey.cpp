#include "controller/SecretKey.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "base/Error.h"
#include "base/Fd.h"
#include "base/Ids.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kKeyBytes = 32;

}  // namespace

std::string loadSecretKey(const std::string& path) {
    std::string key(kKeyBytes, '\0');
    Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (fd) {
        if (::read(fd.get(), key.data(), key.size()) == static_cast<ssize_t>(kKeyBytes)) return key;
        throw std::runtime_error(path + " is damaged; remove it (sessions and links will end)");
    }
    if (errno != ENOENT) throwErrno("open", path);
    randomBytes(key.data(), key.size());
    // Written beside and renamed: a crash leaves the whole key or none.
    const std::string fresh = path + ".new";
    fd = Fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) throwErrno("open", fresh);
    if (::write(fd.get(), key.data(), key.size()) != static_cast<ssize_t>(kKeyBytes)) {
        throwErrno("write", fresh);
    }
    if (::fsync(fd.get()) != 0) throwErrno("fsync", fresh);
    if (::rename(fresh.c_str(), path.c_str()) != 0) throwErrno("rename", path);
    return key;
}

}  // namespace hearth::controller
