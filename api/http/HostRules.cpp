#include "api/http/HostRules.h"

namespace hearth::api {

HostRules::HostRules(bool enabled, const std::vector<std::string>& hosts,
                     const std::vector<std::string>& origins)
    : enabled_(enabled) {
    for (const std::string& host : hosts) hosts_.insert(toLower(host));
    for (const std::string& origin : origins) origins_.insert(toLower(origin));
}

HostRules::Verdict HostRules::check(const RequestHead& head) const {
    if (!enabled_) return Verdict::Allowed;
    if (!hostAllowed(head.host)) return Verdict::BadHost;
    const std::size_t origins = head.count("Origin");
    if (origins == 0) return Verdict::Allowed;
    if (origins > 1 || !originAllowed(head.find("Origin")->value)) return Verdict::BadOrigin;
    return Verdict::Allowed;
}

bool HostRules::originShares(std::string_view origin) const {
    return origins_.contains(toLower(origin));
}

bool HostRules::originAllowed(std::string_view origin) const {
    const std::string lowered = toLower(origin);
    if (origins_.contains(lowered)) return true;
    std::string_view rest = lowered;
    if (rest.starts_with("http://")) {
        rest.remove_prefix(7);
    } else if (rest.starts_with("https://")) {
        rest.remove_prefix(8);
    } else {
        return false;
    }
    const std::optional<std::string> host = hostOf(rest);
    return host && hostAllowed(*host);
}

}  // namespace hearth::api
