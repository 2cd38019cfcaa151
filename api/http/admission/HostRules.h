#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/http/RequestHead.h"

namespace hearth::api {

/// The Host and Origin values that a request may carry: the defence against DNS rebinding and
/// foreign web pages. Immutable.
class HostRules {
public:
    enum class Verdict { Allowed, BadHost, BadOrigin };

    /// `hosts`: names without port; `origins`: whole origins ("https://app.example") in addition to
    /// the hosts' own. With `enabled` false everything is allowed.
    HostRules(bool enabled, const std::vector<std::string>& hosts,
              const std::vector<std::string>& origins);

    Verdict check(const RequestHead& head) const;
    bool hostAllowed(const std::string& host) const { return hosts_.contains(host); }
    /// True for the server's own origin (the authority of the Host header) or one that the operator
    /// named. A page of another port of this machine may be anybody's. "null" is refused.
    bool originAllowed(std::string_view origin, std::string_view host_header) const;
    /// True if the operator named this origin, so that its pages may read the answers (CORS). Pages
    /// from the server's own origin need no such permission.
    bool originShares(std::string_view origin) const;

private:
    bool enabled_;
    std::set<std::string, std::less<>> hosts_;
    std::set<std::string, std::less<>> origins_;
};

}  // namespace hearth::api
