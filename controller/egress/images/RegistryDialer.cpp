#include "controller/egress/images/RegistryDialer.h"

#include "controller/egress/policy/NetworkPolicy.h"

namespace hearth::egress {

std::vector<IpAddress> RegistryDialer::resolve(const std::string& name) const {
    return resolve_ ? resolve_(name) : Dialer::resolve(name);
}

bool RegistryDialer::isNamed(const Destination& destination) const {
    if (!registry_ || !(registry_->literal || registry_->host == "localhost")) return false;
    const bool usual = destination.port == kHttpsPort || destination.port == kHttpPort;
    return destination.host == registry_->host &&
           (registry_->port == 0 ? usual : destination.port == registry_->port);
}

std::vector<IpAddress> RegistryDialer::checked(const Destination& destination) const {
    std::vector<IpAddress> addresses;
    try {
        addresses = addressesOf(destination);
    } catch (const Refused&) {
        if (!proxy_.covers(destination)) throw;
    }
    try {
        check(destination, addresses);
    } catch (const Refused& e) {
        throw Refused(e.status(), e.reason(),
                      destination.text() + " is at an address that images are not fetched from");
    }
    return addresses;
}

Fd RegistryDialer::reach(const Destination& destination) const {
    if (isNamed(destination)) return connect(destination, addressesOf(destination));
    std::vector<IpAddress> addresses = checked(destination);
    if (proxy_.covers(destination)) return proxy_.connect(destination);
    return connect(destination, std::move(addresses));
}

Fd RegistryDialer::dial(const NetworkPolicy&, const Destination& destination) const {
    try {
        return reach(destination);
    } catch (const Refused& e) {
        const MutexLock lock(mutex_);
        refused_ = e;
        throw;
    }
}

void RegistryDialer::checkRegistry() const {
    if (!registry_) return;
    Destination usual = *registry_;
    if (usual.port == 0) usual.port = kHttpsPort;
    if (!isNamed(usual)) checked(usual);
}

std::optional<Refused> RegistryDialer::refused() const {
    const MutexLock lock(mutex_);
    return refused_;
}

}  // namespace hearth::egress
