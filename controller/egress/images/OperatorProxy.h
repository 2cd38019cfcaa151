#pragma once

#include <string>
#include <vector>

#include "base/Fd.h"
#include "controller/egress/policy/AllowList.h"

namespace hearth::egress {

/// The HTTP or SOCKS proxy that this machine uses to reach registries (HTTPS_PROXY, and NO_PROXY:
/// names, names below ".example", ranges of addresses, "*"). Immutable.
class OperatorProxy {
public:
    /// No proxy: everything is reached directly.
    OperatorProxy() = default;
    OperatorProxy(std::string url, const std::string& except);
    static OperatorProxy ofEnvironment();

    bool covers(const Destination& destination) const;
    /// A non-blocking tunnel to the destination. The proxy resolves the name. Throws Refused.
    Fd connect(const Destination& destination) const;

private:
    const std::string url_;
    std::vector<std::string> except_;
};

}  // namespace hearth::egress
