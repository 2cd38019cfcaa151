#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/Mutex.h"
#include "controller/egress/images/OperatorProxy.h"
#include "controller/egress/policy/Refused.h"
#include "controller/egress/transport/Dialer.h"

namespace hearth::egress {

/// Connects for the fetch of one image: to its registry, and to the hosts it redirects to (token
/// services, layer stores). The address of each connection is checked against the DenySet. One
/// exception: a registry that the operator wrote as an address or as localhost is reached at any
/// address, because patterns name a registry's host literally, but only at its port. With the
/// operator's proxy a name is checked by the addresses it has here, if it has any.
class RegistryDialer final : public Dialer {
public:
    using Resolve = std::function<std::vector<IpAddress>(const std::string& name)>;

    /// `registry`: port 0 means the usual ports; nullopt: a registry that is known to be public.
    /// `resolve` replaces the system's resolver; may be empty.
    RegistryDialer(DenySet deny, const OperatorProxy& proxy, std::optional<Destination> registry,
                   Resolve resolve = {})
        : Dialer(std::move(deny)),
          proxy_(proxy),
          registry_(std::move(registry)),
          resolve_(std::move(resolve)) {}

    /// Applies no policy: the image was already allowed.
    Fd dial(const NetworkPolicy& policy, const Destination& destination) const override;
    /// Throws Refused if the registry must not be reached, judged by the addresses it has now.
    void checkRegistry() const;
    /// The last destination that was refused.
    std::optional<Refused> refused() const;

protected:
    std::vector<IpAddress> resolve(const std::string& name) const override;

private:
    bool isNamed(const Destination& destination) const;
    Fd reach(const Destination& destination) const;
    /// Empty if the proxy has to resolve the name.
    std::vector<IpAddress> checked(const Destination& destination) const;

    const OperatorProxy& proxy_;
    const std::optional<Destination> registry_;
    const Resolve resolve_;
    mutable Mutex mutex_;
    mutable std::optional<Refused> refused_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::egress
