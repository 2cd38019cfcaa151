#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace hearth::http {

/// A forward proxy: it is spoken to in plain HTTP; TLS goes through it by CONNECT.
struct Proxy {
    std::string host;
    std::uint16_t port = 0;
    std::string authorization = {};  ///< value of Proxy-Authorization; empty: none
};

/// The usual variables of the environment, as they are written there.
struct ProxySettings {
    std::string http;    ///< HTTP_PROXY
    std::string https;   ///< HTTPS_PROXY
    std::string except;  ///< NO_PROXY

    /// Reads them with `variable`; the spelling in small letters is looked up first.
    static ProxySettings from(
        const std::function<std::optional<std::string>(const std::string&)>& variable);

    /// The proxy for connections to `host`; nullopt if there is none, `host` is excepted, or it is
    /// this machine. Throws Error(InvalidArgument) for a proxy's URL that cannot be used.
    std::optional<Proxy> proxyFor(bool tls, const std::string& host, std::uint16_t port) const;
};

}  // namespace hearth::http
