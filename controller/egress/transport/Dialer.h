#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/Fd.h"
#include "controller/egress/policy/DenySet.h"
#include "controller/egress/policy/NetworkPolicy.h"
#include "controller/egress/policy/Refused.h"

namespace hearth::egress {

/// Makes the connections to the outside. A name is resolved once, here; all its addresses are
/// checked; the connection goes to a checked address and to nothing else. Thread-safe.
class Dialer {
public:
    explicit Dialer(DenySet deny) : deny_(std::move(deny)) {}
    virtual ~Dialer() = default;

    /// Returns a connected, non-blocking socket with TCP_NODELAY. Blocks while resolving (as long
    /// as the resolver takes) and connecting (10 s each, at most 4 addresses). Throws Refused.
    virtual Fd dial(const NetworkPolicy& policy, const Destination& destination) const;

    /// The addresses that a connection may be made to. None is left out: one denied address refuses
    /// them all (a name for both inside and outside is an attack or a mistake).
    std::vector<IpAddress> permitted(const NetworkPolicy& policy,
                                     const Destination& destination) const;

    const DenySet& denySet() const noexcept { return deny_; }

protected:
    /// Throws Refused if the name does not exist.
    virtual std::vector<IpAddress> resolve(const std::string& name) const;
    std::vector<IpAddress> addressesOf(const Destination& destination) const;
    /// Throws Refused if one of them is denied.
    void check(const Destination& destination, const std::vector<IpAddress>& addresses) const;
    /// Connects to the first address that answers.
    static Fd connect(const Destination& destination, std::vector<IpAddress> addresses);

private:
    const DenySet deny_;
};

}  // namespace hearth::egress
