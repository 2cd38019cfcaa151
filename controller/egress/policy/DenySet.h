#pragma once

#include <string>
#include <vector>

#include "controller/egress/policy/IpAddress.h"

namespace hearth::egress {

/// The addresses that no sandbox reaches whatever its pool allows: everything outside the public
/// Internet (IANA special-purpose registries: private, loopback, link-local with the metadata
/// services, shared, multicast, documentation, translation and tunnel prefixes), one cloud's
/// metadata service at a public address, this machine's own addresses, and the operator's (nodes,
/// Pods, services). Immutable except for the machine's addresses, which are read each time.
/// Thread-safe.
class DenySet {
public:
    DenySet() = default;
    /// `more` is denied too; `exempt` is allowed although a range above denies it (an internal
    /// service that the operator opens). If both match an address, the longer prefix wins: a
    /// network may be exempt except for its services, or the reverse. A range in both lists is
    /// denied.
    DenySet(std::vector<IpRange> more, std::vector<IpRange> exempt)
        : more_(std::move(more)), exempt_(std::move(exempt)) {}

    bool denies(const IpAddress& address) const;

private:
    std::vector<IpRange> more_;
    std::vector<IpRange> exempt_;
};

/// Reads the ranges of a flag; throws Error(InvalidArgument) that names the first invalid one.
std::vector<IpRange> parseRanges(const std::vector<std::string>& texts, const std::string& flag);

}  // namespace hearth::egress
