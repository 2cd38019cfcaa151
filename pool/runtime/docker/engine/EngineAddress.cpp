#include "pool/runtime/docker/engine/EngineAddress.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/Error.h"

namespace hearth::pool::docker {
namespace {

constexpr const char* kUsualSocket = "/var/run/docker.sock";
constexpr std::uint16_t kPlainPort = 2375;
constexpr std::uint16_t kTlsPort = 2376;

[[noreturn]] void refuse(const std::string& value, const std::string& why) {
    throw Error(ErrorCode::InvalidArgument, "DOCKER_HOST is \"" + value + "\": " + why)
        .hint("write unix:///path/of/docker.sock or tcp://HOST:PORT");
}

void readHost(const std::string& value, std::string_view rest, EngineAddress& address) {
    rest = rest.substr(0, rest.find('/'));
    std::size_t colon = rest.rfind(':');
    if (rest.starts_with('[')) {
        const std::size_t close = rest.find(']');
        if (close == std::string_view::npos) refuse(value, "a bracket is missing");
        address.host = rest.substr(1, close - 1);
        colon = close + 1 < rest.size() && rest[close + 1] == ':' ? close + 1 : rest.npos;
    } else {
        address.host = rest.substr(0, colon);
    }
    if (address.host.empty()) refuse(value, "it names no host");
    address.port = address.tls ? kTlsPort : kPlainPort;
    if (colon == std::string_view::npos) return;
    const std::string_view port = rest.substr(colon + 1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (error != std::errc{} || end != port.data() + port.size() || address.port == 0) {
        refuse(value, "its port is not a number");
    }
}

}  // namespace

std::string EngineAddress::text() const {
    if (!socket.empty()) return "unix://" + socket;
    const bool six = host.find(':') != std::string::npos;
    return "tcp://" + (six ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

EngineAddress engineAddress(const Variables& variables) {
    const std::string value = variables("DOCKER_HOST").value_or("");
    EngineAddress address;
    if (value.empty()) {
        address.socket = kUsualSocket;
        return address;
    }
    if (value.starts_with("unix://")) {
        address.socket = value.substr(7);
        if (!address.socket.starts_with('/')) refuse(value, "the path is not absolute");
        return address;
    }
    if (!value.starts_with("tcp://")) refuse(value, "neither unix:// nor tcp://");
    // As in Docker: any text, even "0", switches it on.
    address.verify = !variables("DOCKER_TLS_VERIFY").value_or("").empty();
    address.tls = address.verify || !variables("DOCKER_TLS").value_or("").empty();
    if (address.tls) {
        address.certificates = variables("DOCKER_CERT_PATH").value_or("");
        if (address.certificates.empty()) {
            address.certificates = variables("HOME").value_or("") + "/.docker";
        }
    }
    readHost(value, std::string_view(value).substr(6), address);
    return address;
}

EngineAddress engineAddress() {
    return engineAddress([](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    });
}

}  // namespace hearth::pool::docker
