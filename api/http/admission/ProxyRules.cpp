#include "api/http/admission/ProxyRules.h"

#include <algorithm>
#include <charconv>

#include "base/Error.h"
#include "base/http/Url.h"

namespace hearth::api {
namespace {

using Poco::Net::IPAddress;

std::optional<IPAddress> addressOf(std::string_view text) {
    IPAddress address;
    if (!IPAddress::tryParse(std::string(text), address)) return std::nullopt;
    if (address.isIPv4Mapped()) {  // "::ffff:10.0.0.7" becomes 10.0.0.7
        const std::string mapped = address.toString();
        if (!IPAddress::tryParse(mapped.substr(mapped.rfind(':') + 1), address)) {
            return std::nullopt;
        }
    }
    return address;
}

/// True if the first `bits` bits are the same.
bool within(const IPAddress& address, const IPAddress& range, unsigned bits) {
    if (address.family() != range.family()) return false;
    const auto* one = static_cast<const unsigned char*>(address.addr());
    const auto* other = static_cast<const unsigned char*>(range.addr());
    for (unsigned bit = 0; bit < bits; ++bit) {
        const unsigned mask = 0x80U >> (bit % 8);
        if ((one[bit / 8] & mask) != (other[bit / 8] & mask)) return false;
    }
    return true;
}

}  // namespace

ProxyRules::ProxyRules(const std::vector<std::string>& trusted) {
    for (const std::string& text : trusted) trusted_.push_back(parse(text));
}

ProxyRules::Range ProxyRules::parse(const std::string& text) {
    const std::size_t slash = text.find('/');
    const std::optional<IPAddress> address = addressOf(std::string_view(text).substr(0, slash));
    const unsigned most = address && address->family() == IPAddress::IPv6 ? 128 : 32;
    unsigned bits = most;
    bool good = address.has_value();
    if (slash != std::string::npos) {
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, bits);
        good = good && error == std::errc{} && stop == end && bits <= most;
    }
    if (!good) {
        throw Error(ErrorCode::InvalidArgument,
                    "\"" + text + "\" is no address and no range of addresses")
            .hint("write 10.0.0.7, 10.0.0.0/8 or fd00::/8");
    }
    return {*address, bits};
}

bool ProxyRules::trusts(const IPAddress& address) const {
    return std::any_of(trusted_.begin(), trusted_.end(), [&](const Range& range) {
        return within(address, range.address, range.bits);
    });
}

bool ProxyRules::trusts(const std::string& peer) const {
    if (trusted_.empty()) return false;
    const std::optional<IPAddress> address = addressOf(peer);
    return address && trusts(*address);
}

std::optional<std::string> ProxyRules::client(const std::string& peer,
                                              const RequestHead& head) const {
    if (!trusts(peer)) return std::nullopt;
    std::string hops;  // several fields are one list
    for (const RequestHead::Field& field : head.fields) {
        if (!equalsIgnoreCase(field.name, "X-Forwarded-For")) continue;
        if (!hops.empty()) hops += ',';
        hops += field.value;
    }
    // Starts at the last hop: each was written by the hop after it, so by a trusted proxy.
    std::optional<std::string> client;
    if (!hops.empty()) client = peer;
    std::string_view rest = hops;
    while (!rest.empty()) {
        const std::size_t comma = rest.rfind(',');
        const std::string_view hop =
            trim(comma == std::string_view::npos ? rest : rest.substr(comma + 1));
        rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(0, comma);
        const std::optional<IPAddress> address = addressOf(hop);
        if (!address) break;
        client = address->toString();
        if (!trusts(*address)) break;
    }
    return client;
}

}  // namespace hearth::api
