#include "controller/broker/credentials/SecretDirectory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/Fd.h"
#include "controller/broker/Dialer.h"

namespace hearth::broker {
namespace {

constexpr int kBadGateway = 502;
constexpr std::size_t kRoom = 8'192;

/// A tenant's name comes from a token: it must not lead out of its directory.
bool isOneName(const std::string& name) {
    return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos;
}

}  // namespace

std::string SecretDirectory::value(const Credential& credential) const {
    if (!credential.value.empty()) return credential.value;
    const auto refused = [&](const std::string& why) {
        return Refused(kBadGateway, "no_secret", "the secret " + credential.secret + " " + why);
    };
    const bool tenants = !credential.tenant.empty();
    if (directory_.empty() || (tenants && !isOneName(credential.tenant))) {
        throw refused("is not there: the server has no secrets");
    }
    const std::string path =
        directory_ + (tenants ? "/tenants/" + credential.tenant : "") + "/" + credential.secret;
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    std::string text(kRoom, '\0');
    ssize_t n = -1;
    if (fd) {
        do {
            n = ::read(fd.get(), text.data(), text.size());
        } while (n < 0 && errno == EINTR);
    }
    if (n < 0) throw refused(errno == ENOENT ? "is not there" : "cannot be read");
    text.resize(static_cast<std::size_t>(n));
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    if (!isSecretValue(text)) throw refused("is not 8 to 4,096 printable ASCII characters");
    return text;
}

}  // namespace hearth::broker
