#include "controller/egress/images/OperatorProxy.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/http/Url.h"
#include "controller/egress/policy/Refused.h"
#include "controller/egress/transport/Curl.h"

namespace hearth::egress {
namespace {

std::string firstOf(std::initializer_list<const char*> names) {
    for (const char* name : names) {
        const char* const value = std::getenv(name);
        if (value != nullptr && *value != '\0') return value;
    }
    return {};
}

bool excepts(std::string_view entry, const Destination& destination) {
    if (entry == "*") return true;
    if (const auto range = IpRange::parse(entry)) {
        return destination.literal && range->contains(*destination.literal);
    }
    for (const std::string_view below : {"*.", "."}) {
        if (entry.starts_with(below)) entry.remove_prefix(below.size());
    }
    const auto known = Destination::parse(entry, 0);
    if (!known || (known->port != 0 && known->port != destination.port)) return false;
    return destination.host == known->host ||
           (!destination.literal && destination.host.ends_with("." + known->host));
}

}  // namespace

OperatorProxy::OperatorProxy(std::string url, const std::string& except) : url_(std::move(url)) {
    std::string_view rest = except;
    while (!rest.empty()) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::string_view entry = trim(rest.substr(0, comma));
        if (!entry.empty()) except_.emplace_back(entry);
        rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
}

OperatorProxy OperatorProxy::ofEnvironment() {
    return {firstOf({"HTTPS_PROXY", "https_proxy"}), firstOf({"NO_PROXY", "no_proxy"})};
}

bool OperatorProxy::covers(const Destination& destination) const {
    return !url_.empty() && std::none_of(except_.begin(), except_.end(), [&](const auto& entry) {
        return excepts(entry, destination);
    });
}

Fd OperatorProxy::connect(const Destination& destination) const {
    CurlHandle curl;
    curl.set(CURLOPT_URL, ("http://" + destination.text() + "/").c_str());
    curl.set(CURLOPT_PROXY, url_.c_str());
    curl.set(CURLOPT_NOPROXY, "");
    curl.set(CURLOPT_HTTPPROXYTUNNEL, 1L);
    curl.set(CURLOPT_CONNECT_ONLY, 1L);
    curl.set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    curl.set(CURLOPT_NOSIGNAL, 1L);
    const CURLcode result = ::curl_easy_perform(curl.get());
    curl_socket_t socket = CURL_SOCKET_BAD;
    if (result == CURLE_OK) ::curl_easy_getinfo(curl.get(), CURLINFO_ACTIVESOCKET, &socket);
    // The handle closes its own socket; a tunnel through TLS cannot be used without the handle.
    Fd fd(socket == CURL_SOCKET_BAD || url_.starts_with("https:")
              ? -1
              : ::fcntl(socket, F_DUPFD_CLOEXEC, 0));
    if (!fd || ::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) {
        const std::string why = url_.starts_with("https:") ? "a proxy over TLS is not supported"
                                : result == CURLE_OK       ? "no connection"
                                                           : ::curl_easy_strerror(result);
        throw Refused(
            kBadGateway, "unreachable",
            destination.text() + " cannot be reached through the machine's proxy: " + why);
    }
    return fd;
}

}  // namespace hearth::egress
