#include "controller/egress/policy/DenySet.h"

#include <ifaddrs.h>

#include <memory>
#include <optional>

#include "base/Error.h"

namespace hearth::egress {
namespace {

/// https://www.iana.org/assignments/iana-ipv4-special-registry: addresses that are not globally
/// reachable, multicast and reserved space.
constexpr const char* kNotPublicV4[] = {
    "0.0.0.0/8",     "10.0.0.0/8",      "100.64.0.0/10",  "127.0.0.0/8",    "169.254.0.0/16",
    "172.16.0.0/12", "192.0.0.0/24",    "192.0.2.0/24",   "192.88.99.0/24", "192.168.0.0/16",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",    "240.0.0.0/4",
    "168.63.129.16",  // Azure's metadata
};

/// Global unicast is 2000::/3; these parts carry other addresses, or belong to no host.
constexpr const char* kGlobalV6 = "2000::/3";
constexpr const char* kNotPublicV6[] = {"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"};

template <std::size_t N>
std::vector<IpRange> ranges(const char* const (&texts)[N]) {
    std::vector<IpRange> out;
    for (const char* text : texts) out.push_back(IpRange::parse(text).value());
    return out;
}

/// The length of the longest prefix that contains the address; nullopt if none does.
std::optional<unsigned> longest(const std::vector<IpRange>& ranges, const IpAddress& address) {
    std::optional<unsigned> out;
    for (const IpRange& range : ranges) {
        if (range.contains(address) && (!out || *out < range.bits())) out = range.bits();
    }
    return out;
}

bool holds(const std::vector<IpRange>& ranges, const IpAddress& address) {
    return longest(ranges, address).has_value();
}

bool isPublic(const IpAddress& address) {
    static const std::vector<IpRange> v4 = ranges(kNotPublicV4);
    static const std::vector<IpRange> v6 = ranges(kNotPublicV6);
    static const IpRange global = IpRange::parse(kGlobalV6).value();
    if (address.isV4()) return !holds(v4, address);
    return global.contains(address) && !holds(v6, address);
}

bool isThisMachine(const IpAddress& address) {
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) return true;  // unknown: it may be this machine's
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, &::freeifaddrs);
    for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr) continue;
        if (IpAddress::of(*entry->ifa_addr) == address) return true;
    }
    return false;
}

}  // namespace

bool DenySet::denies(const IpAddress& address) const {
    const std::optional<unsigned> exempt = longest(exempt_, address);
    const std::optional<unsigned> more = longest(more_, address);
    if (exempt || more) return more >= exempt;  // an empty optional compares less than any value
    return !isPublic(address) || isThisMachine(address);
}

std::vector<IpRange> parseRanges(const std::vector<std::string>& texts, const std::string& flag) {
    std::vector<IpRange> out;
    for (const std::string& text : texts) {
        const std::optional<IpRange> range = IpRange::parse(text);
        if (!range) {
            throw Error(ErrorCode::InvalidArgument, flag + ": \"" + text + "\" is no address range")
                .hint("write it as 10.0.0.0/8 or 2001:4860::/32");
        }
        out.push_back(*range);
    }
    return out;
}

}  // namespace hearth::egress
