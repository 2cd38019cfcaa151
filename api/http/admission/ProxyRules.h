#pragma once

#include <Poco/Net/IPAddress.h>

#include <optional>
#include <string>
#include <vector>

#include "base/http/RequestHead.h"

namespace hearth::api {

/// The proxies that the operator trusts to name their clients in X-Forwarded-For. The header of
/// every other peer is ignored. Immutable.
class ProxyRules {
public:
    /// Addresses and ranges: "10.0.0.7", "10.0.0.0/8", "fd00::/8". Throws Error(InvalidArgument)
    /// for anything else.
    explicit ProxyRules(const std::vector<std::string>& trusted);

    bool trusts(const std::string& peer) const;
    /// The client behind `peer`: the last hop that is not a trusted proxy. nullopt if the peer is
    /// not trusted or sends no such header.
    std::optional<std::string> client(const std::string& peer, const RequestHead& head) const;

private:
    struct Range {
        Poco::Net::IPAddress address;
        unsigned bits = 0;
    };
    static Range parse(const std::string& text);
    bool trusts(const Poco::Net::IPAddress& address) const;

    std::vector<Range> trusted_;
};

}  // namespace hearth::api
