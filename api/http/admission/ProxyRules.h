#pragma once

#include <Poco/Net/IPAddress.h>

#include <optional>
#include <string>
#include <vector>

#include "base/http/RequestHead.h"

namespace hearth::api {

/// The proxies that the operator trusts to say in X-Forwarded-For for whom they ask. That header of
/// anybody else is ignored. Immutable.
class ProxyRules {
public:
    /// Addresses and ranges: "10.0.0.7", "10.0.0.0/8", "fd00::/8". Throws Error(InvalidArgument)
    /// for anything else.
    explicit ProxyRules(const std::vector<std::string>& trusted);

    bool trusts(const std::string& peer) const;
    /// For whom `peer` sends a request: the last hop that is no trusted proxy. None where the peer
    /// is not trusted or does not say so.
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
