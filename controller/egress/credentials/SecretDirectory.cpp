#include "controller/egress/credentials/SecretDirectory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/Fd.h"
#include "controller/egress/policy/Refused.h"

namespace hearth::egress {
namespace {

constexpr std::size_t kRoomForSecret = 8'192;
constexpr const char* kSound = "8 to 4,096 printable ASCII characters";

/// A tenant's name comes from a token: it must not lead out of its directory.
bool isOneName(const std::string& name) {
    return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos;
}

}  // namespace

std::pair<std::string, SecretDirectory::Lack> SecretDirectory::read(
    const Credential& credential) const {
    const bool tenants = !credential.tenant.empty();
    if (directory_.empty() || (tenants && !isOneName(credential.tenant))) {
        return {"", Lack::NoDirectory};
    }
    const std::string path =
        directory_ + (tenants ? "/tenants/" + credential.tenant : "") + "/" + credential.secret;
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    std::string text(kRoomForSecret, '\0');
    ssize_t n = -1;
    if (fd) {
        do {
            n = ::read(fd.get(), text.data(), text.size());
        } while (n < 0 && errno == EINTR);
    }
    if (n < 0) return {"", errno == ENOENT ? Lack::NoFile : Lack::Unreadable};
    text.resize(static_cast<std::size_t>(n));
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    if (!isSecretValue(text)) return {"", Lack::NoSecret};
    return {std::move(text), Lack::None};
}

std::string SecretDirectory::value(const Credential& credential) const {
    if (!credential.value.empty()) return credential.value;
    auto [text, lack] = read(credential);
    const auto refused = [&](const std::string& why) {
        return Refused(kBadGateway, "no_secret", "the secret " + credential.secret + " " + why);
    };
    switch (lack) {
        case Lack::NoDirectory:
            throw refused("is not there: the server has no secrets");
        case Lack::NoFile:
            throw refused("is not there");
        case Lack::Unreadable:
            throw refused("cannot be read");
        case Lack::NoSecret:
            throw refused("is not " + std::string(kSound));
        case Lack::None:
            break;
    }
    return std::move(text);
}

std::string SecretDirectory::lackOf(const Credential& credential) const {
    if (!credential.value.empty()) return "";
    switch (read(credential).second) {
        case Lack::NoDirectory:
            return "egress.secrets is not set";
        case Lack::NoFile:
            return "no such file in egress.secrets";
        case Lack::Unreadable:
            return "its file cannot be read by the server";
        case Lack::NoSecret:
            return "its file is not " + std::string(kSound);
        case Lack::None:
            break;
    }
    return "";
}

}  // namespace hearth::egress
