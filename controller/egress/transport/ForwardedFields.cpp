#include "controller/egress/transport/ForwardedFields.h"

#include <algorithm>
#include <array>

#include "base/http/Url.h"

namespace hearth::egress {
namespace {

constexpr std::array<std::string_view, 13> kNotForwarded{"Connection",
                                                         "Keep-Alive",
                                                         "Proxy-Authenticate",
                                                         "Proxy-Authorization",
                                                         "Proxy-Connection",
                                                         "TE",
                                                         "Trailer",
                                                         "Upgrade",
                                                         "Content-Length",
                                                         "Transfer-Encoding",
                                                         "Host",
                                                         "Forwarded",
                                                         "Via"};

}  // namespace

bool isHopByHop(std::string_view name) noexcept {
    return std::any_of(kNotForwarded.begin(), kNotForwarded.end(),
                       [&](std::string_view known) { return equalsIgnoreCase(known, name); });
}

bool isForwarded(const RequestHead& head, std::string_view name) {
    if (isHopByHop(name)) return false;
    for (const RequestHead::Field& field : head.fields) {
        if (!equalsIgnoreCase(field.name, "Connection")) continue;
        std::string_view rest = field.value;
        while (!rest.empty()) {
            const std::size_t comma = std::min(rest.find(','), rest.size());
            if (equalsIgnoreCase(trim(rest.substr(0, comma)), name)) return false;
            rest.remove_prefix(std::min(comma + 1, rest.size()));
        }
    }
    return true;
}

std::string forwardedHead(const RequestHead& head) {
    std::string out =
        head.method + " " + head.target + " HTTP/1.1\r\nHost: " + head.authority + "\r\n";
    for (const RequestHead::Field& field : head.fields) {
        if (!isForwarded(head, field.name)) continue;
        out.append(field.name).append(": ").append(field.value).append("\r\n");
    }
    // The length must match the body that is sent, even if Connection names this field.
    if (head.count("Content-Length") > 0) {
        out += "Content-Length: " + std::to_string(head.content_length) + "\r\n";
    }
    return out + "Connection: close\r\n\r\n";
}

}  // namespace hearth::egress
