#pragma once

#include <string>
#include <vector>

#include "controller/egress/policy/IpAddress.h"

namespace hearth::broker {

/// The addresses that no sandbox reaches whatever its pool allows: everything that is not the
/// public Internet (IANA special-purpose registries: private, loopback, link-local with the
/// metadata services, shared, multicast, documentation, translation and tunnel prefixes), the
/// metadata service of one cloud that has a public address, this machine's own addresses, and what
/// the operator adds (nodes, Pods, services). Immutable but for the machine's addresses, which are
/// read each time. Thread-safe.
class DenySet {
public:
    DenySet() = default;
    /// `more` is denied, too; `exempt` is not, though a range above says so (an internal service
    /// that the operator wants to be reached). Where both hold an address the longer prefix says
    /// what is meant: a network may be exempt but for the services in it, or the other way about.
    /// One range in both is denied.
    DenySet(std::vector<IpRange> more, std::vector<IpRange> exempt)
        : more_(std::move(more)), exempt_(std::move(exempt)) {}

    bool denies(const IpAddress& address) const;

private:
    std::vector<IpRange> more_;
    std::vector<IpRange> exempt_;
};

/// Reads ranges of a flag; throws Error(InvalidArgument) that names the one that is none.
std::vector<IpRange> parseRanges(const std::vector<std::string>& texts, const std::string& flag);

}  // namespace hearth::broker
