#include "base/http/client/ServerUrl.h"

#include <Poco/Exception.h>
#include <Poco/Net/IPAddress.h>
#include <Poco/URI.h>
#include <sys/un.h>

#include <algorithm>
#include <string_view>

#include "base/Error.h"
#include "base/http/Url.h"

namespace hearth::http {

bool isLoopbackHost(const std::string& host) {
    Poco::Net::IPAddress address;
    if (Poco::Net::IPAddress::tryParse(host, address)) return address.isLoopback();
    return equalsIgnoreCase(host, "localhost");
}

ServerUrl ServerUrl::parse(const std::string& text) {
    constexpr std::string_view kUnix = "unix://";
    const auto refuse = [&](const std::string& why) {
        return Error(ErrorCode::InvalidArgument, why + text);
    };
    ServerUrl url;
    if (text.starts_with(kUnix)) {
        url.socket = text.substr(kUnix.size());
        url.authority = "localhost";
        if (!url.socket.empty() && url.socket.size() < sizeof(sockaddr_un::sun_path)) return url;
        throw refuse("bad socket path in ");
    }
    url.tls = text.starts_with("https://");
    if (!url.tls && !text.starts_with("http://")) {
        throw refuse("not an http://, https:// or unix:// URL: ")
            .hint("write http://HOST:PORT or https://HOST, or unix:///PATH");
    }
    const std::size_t begin = text.find("//") + 2;
    const std::size_t slash = std::min(text.find('/', begin), text.size());
    url.path = text.substr(slash);
    while (url.path.ends_with('/')) url.path.pop_back();
    try {
        const Poco::URI uri(text.substr(0, slash));
        url.host = uri.getHost();
        url.port = uri.getPort();
        url.authority = text.substr(begin, slash - begin);
        if (!url.host.empty() && uri.getUserInfo().empty()) return url;
    } catch (const Poco::Exception&) {
        url.host.clear();
    }
    throw refuse("bad host or port in ");
}

}  // namespace hearth::http
