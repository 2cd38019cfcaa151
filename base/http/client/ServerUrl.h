#pragma once

#include <cstdint>
#include <string>

namespace hearth::http {

/// True for a URL's host that is this machine: a loopback address, or "localhost". Resolves
/// nothing.
bool isLoopbackHost(const std::string& host);

/// The parts of a server's URL: "http://HOST:PORT", "https://HOST", either with a path that stands
/// before every target, or "unix:///PATH".
struct ServerUrl {
    std::string socket;  ///< path of a Unix socket; empty: host and port
    std::string host;
    std::uint16_t port = 0;
    bool tls = false;
    std::string authority;  ///< host and port as in the URL, for the header Host
    std::string path;       ///< without a slash at its end

    /// Throws Error(InvalidArgument) with a hint.
    static ServerUrl parse(const std::string& text);
};

}  // namespace hearth::http
