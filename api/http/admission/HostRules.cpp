#include "api/http/admission/HostRules.h"

namespace hearth::api {

namespace {

/// True for a change that Sec-Fetch-Site marks as a foreign page's; new browsers send Origin, too.
bool sentByForeignPage(const RequestHead& head) {
    if (head.method == "GET" || head.method == "HEAD" || head.method == "OPTIONS") return false;
    const auto* site = head.find("Sec-Fetch-Site");
    return site != nullptr && site->value != "same-origin" && site->value != "none";
}

}  // namespace

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
    if (origins == 0) return sentByForeignPage(head) ? Verdict::BadOrigin : Verdict::Allowed;
    if (origins > 1 || !originAllowed(head.find("Origin")->value, head.find("Host")->value))
        return Verdict::BadOrigin;
    return Verdict::Allowed;
}

bool HostRules::originShares(std::string_view origin) const {
    return origins_.contains(toLower(origin));
}

bool HostRules::originAllowed(std::string_view origin, std::string_view host_header) const {
    const std::string lowered = toLower(origin);
    if (origins_.contains(lowered)) return true;
    std::string_view authority = lowered;
    std::string_view usual_port;
    if (authority.starts_with("http://")) {
        authority.remove_prefix(7);
        usual_port = ":80";
    } else if (authority.starts_with("https://")) {
        authority.remove_prefix(8);
        usual_port = ":443";
    } else {
        return false;
    }
    const std::optional<std::string> host = hostOf(authority);
    if (!host || !hostAllowed(*host)) return false;
    // Both sides may leave out the usual port of their scheme.
    const auto full = [&](std::string_view text) {
        const bool has_port = text.size() > host->size();
        return std::string(text) + std::string(has_port ? "" : usual_port);
    };
    return full(authority) == full(toLower(host_header));
}

}  // namespace hearth::api
