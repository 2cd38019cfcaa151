#include "base/http/client/Proxy.h"

#include <Poco/Exception.h>
#include <Poco/StringTokenizer.h>
#include <Poco/URI.h>

#include "base/Error.h"
#include "base/Ids.h"
#include "base/http/Url.h"
#include "base/http/client/ServerUrl.h"

namespace hearth::http {
namespace {

/// Never resolves a name: perhaps only the proxy can look it up.
bool isLoopback(const std::string& host) {
    return isLoopbackHost(host) || toLower(host).ends_with(".localhost");
}

/// "example.com" and ".example.com" stand for the name and all below it, "host:80" for one port.
bool excepts(std::string entry, const std::string& host, std::uint16_t port) {
    if (entry == "*") return true;
    const std::size_t colon = entry.rfind(':');
    if (colon != entry.npos && entry.find(':') == colon) {
        if (entry.substr(colon + 1) != std::to_string(port)) return false;
        entry.resize(colon);
    }
    if (entry.starts_with('.')) entry.erase(0, 1);
    entry = toLower(entry);
    const std::string name = toLower(host);
    return !entry.empty() && (name == entry || name.ends_with("." + entry));
}

Proxy parse(const std::string& text, const char* variable) {
    const auto refuse = [&] {
        return Error(ErrorCode::InvalidArgument,
                     std::string(variable) + " is no URL of an HTTP proxy")
            .hint("write http://HOST:PORT, or unset it");
    };
    const bool scheme = text.find("://") != text.npos;
    if (scheme && !text.starts_with("http://")) throw refuse();
    try {
        const Poco::URI uri(scheme ? text : "http://" + text);
        if (uri.getHost().empty()) throw refuse();
        Proxy proxy{uri.getHost(), uri.getPort()};
        if (const std::string user = uri.getUserInfo(); !user.empty()) {
            proxy.authorization = "Basic " + base64Encode(percentDecode(user).value_or(user));
        }
        return proxy;
    } catch (const Poco::Exception&) {
        throw refuse();
    }
}

}  // namespace

ProxySettings ProxySettings::from(
    const std::function<std::optional<std::string>(const std::string&)>& variable) {
    const auto either = [&](const char* small, const char* capital) {
        const auto found = variable(small);
        return found ? *found : variable(capital).value_or("");
    };
    return {either("http_proxy", "HTTP_PROXY"), either("https_proxy", "HTTPS_PROXY"),
            either("no_proxy", "NO_PROXY")};
}

std::optional<Proxy> ProxySettings::proxyFor(bool tls, const std::string& host,
                                             std::uint16_t port) const {
    const std::string& text = tls ? https : http;
    if (text.empty() || isLoopback(host)) return std::nullopt;
    const Poco::StringTokenizer entries(
        except, ", ", Poco::StringTokenizer::TOK_IGNORE_EMPTY | Poco::StringTokenizer::TOK_TRIM);
    for (const std::string& entry : entries) {
        if (excepts(entry, host, port)) return std::nullopt;
    }
    return parse(text, tls ? "HTTPS_PROXY" : "HTTP_PROXY");
}

}  // namespace hearth::http
