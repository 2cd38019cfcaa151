#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace hearth::pool::docker {

/// The address of a Docker Engine, and how to connect to it.
struct EngineAddress {
    std::string socket;  ///< path of its Unix socket; empty: host and port
    std::string host;
    std::uint16_t port = 0;
    bool tls = false;
    bool verify = false;       ///< its certificate, against ca.pem
    std::string certificates;  ///< folder with ca.pem, cert.pem and key.pem

    /// Returns "unix:///run/docker.sock", "tcp://host:2376".
    std::string text() const;
};

/// Reads an environment variable; nullopt if it is not set.
using Variables = std::function<std::optional<std::string>(const std::string&)>;

/// Finds the address as Docker's own command line does: DOCKER_HOST (unix:// or tcp://; unset: its
/// usual socket), DOCKER_TLS_VERIFY, DOCKER_TLS and DOCKER_CERT_PATH. Throws Error(InvalidArgument)
/// for anything else.
EngineAddress engineAddress(const Variables& variables);
/// The same with the variables of this process.
EngineAddress engineAddress();

}  // namespace hearth::pool::docker
