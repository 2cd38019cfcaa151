#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/egress/policy/IpAddress.h"

namespace hearth::egress {

/// The destination of a request as its client wrote it, checked and in one spelling.
struct Destination {
    std::string host;  ///< a name in lower case without final dot, or a literal's standard text
    std::uint16_t port = 0;
    std::optional<IpAddress> literal;  ///< set if the host is an address

    /// Parses "host" or "host:port"; nullopt for anything except a name or an address in a standard
    /// spelling. A name whose last label is a number is refused: libraries read it differently.
    static std::optional<Destination> parse(std::string_view authority, std::uint16_t otherwise);
    /// Returns "host:port", with an IPv6 literal in brackets.
    std::string text() const;

    bool operator==(const Destination&) const = default;
};

/// The destinations that a pool's sandboxes may reach: "api.example.com", "*.example.com:443",
/// "203.0.113.0/24:80", "[2001:4860::1]:443", "*". Without a port: 80 and 443. The DenySet also
/// applies. A name never matches a range of addresses, whatever it resolves to. Immutable.
class AllowList {
public:
    AllowList() = default;

    /// The fault of an entry, or nullopt if it has none.
    static std::optional<std::string> wrong(std::string_view entry);
    /// Throws Error(InvalidArgument) if an entry has a fault.
    explicit AllowList(const std::vector<std::string>& entries);

    bool allows(const Destination& destination) const;
    bool empty() const noexcept { return rules_.empty(); }

private:
    struct Rule {
        std::string name;  ///< exact; with `below` the end of the host (".example.com")
        bool below = false;
        bool any = false;
        std::optional<IpRange> range;
        std::uint16_t port = 0;  ///< 0: 80 and 443
    };
    static std::optional<Rule> parse(std::string_view entry);

    std::vector<Rule> rules_;
};

}  // namespace hearth::egress
