#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/Fd.h"
#include "controller/broker/DenySet.h"
#include "controller/broker/NetworkPolicy.h"

namespace hearth::broker {

/// Why a destination is not reached: a status of HTTP, a word for counters and logs, and a sentence
/// for whoever asked.
class Refused : public std::runtime_error {
public:
    Refused(int status, std::string reason, const std::string& message)
        : std::runtime_error(message), status_(status), reason_(std::move(reason)) {}
    int status() const noexcept { return status_; }
    const std::string& reason() const noexcept { return reason_; }

private:
    int status_;
    std::string reason_;
};

/// Makes the connections to the outside: a name is resolved once, here; every address it has is
/// checked; the connection goes to a checked address and to nothing else. Thread-safe.
class Dialer {
public:
    explicit Dialer(DenySet deny) : deny_(std::move(deny)) {}
    virtual ~Dialer() = default;

    /// A connected socket, non-blocking, without delay. Blocks while resolving (the resolver's own
    /// time) and connecting (10 s an address, of at most 4). Throws Refused.
    Fd dial(const NetworkPolicy& policy, const Destination& destination) const;

    /// The addresses that a connection may be made to: none are left out, one that is denied
    /// refuses them all (a name that means both inside and outside is an attack or a mistake).
    std::vector<IpAddress> permitted(const NetworkPolicy& policy,
                                     const Destination& destination) const;

    const DenySet& denySet() const noexcept { return deny_; }

protected:
    /// Throws Refused if the name does not exist.
    virtual std::vector<IpAddress> resolve(const std::string& name) const;

private:
    const DenySet deny_;
};

}  // namespace hearth::broker
