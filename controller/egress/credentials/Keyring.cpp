#include "controller/egress/credentials/Keyring.h"

#include <algorithm>
#include <optional>

#include "base/Ids.h"
#include "base/http/Url.h"

namespace hearth::egress {
namespace {

void add(std::vector<std::string>& all, std::string one) {
    if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
}

}  // namespace

Keyring::Keyring(std::vector<Credential> credentials, const SecretDirectory& secrets,
                 std::unique_ptr<TlsAuthority> authority)
    : credentials_(std::move(credentials)), secrets_(secrets), authority_(std::move(authority)) {}

bool Keyring::covers(const Destination& destination, bool tls) const {
    return std::any_of(credentials_.begin(), credentials_.end(), [&](const Credential& c) {
        return c.tls == tls && c.destination == destination;
    });
}

CredentialGrant Keyring::grant(const Destination& destination, bool tls) const {
    CredentialGrant out;
    for (const Credential& credential : credentials_) {
        if (credential.tls != tls || credential.destination != destination) continue;
        const std::string value = secrets_.value(credential);
        add(out.hidden, value);
        switch (credential.place) {
            case Credential::Place::Header: {
                std::string text = credential.form;
                text.replace(text.find("{}"), 2, value);
                out.headers.emplace_back(credential.name, std::move(text));
                break;
            }
            case Credential::Place::Basic: {
                const std::string pair = base64Encode(credential.name + ":" + value);
                add(out.hidden, pair);
                out.headers.emplace_back("Authorization", "Basic " + pair);
                break;
            }
            case Credential::Place::Query:
                out.query.emplace_back(credential.name, value);
                break;
        }
    }
    return out;
}

std::string withQuery(const std::string& target,
                      const std::vector<std::pair<std::string, std::string>>& query) {
    if (query.empty()) return target;
    const std::size_t mark = std::min(target.find('?'), target.size());
    std::string out = target.substr(0, mark);
    char joint = '?';
    const auto append = [&](std::string_view parameter) {
        out += std::exchange(joint, '&');
        out += parameter;
    };
    std::string_view rest = std::string_view(target).substr(mark);
    while (!rest.empty()) {
        rest.remove_prefix(1);
        const std::size_t end = std::min(rest.find('&'), rest.size());
        const std::string_view one = rest.substr(0, end);
        rest.remove_prefix(end);
        const auto name = percentDecode(one.substr(0, std::min(one.find('='), one.size())), true);
        const bool replaced = std::any_of(query.begin(), query.end(),
                                          [&](const auto& ours) { return name == ours.first; });
        if (!replaced && !one.empty()) append(one);
    }
    for (const auto& [name, value] : query)
        append(percentEncode(name) + "=" + percentEncode(value));
    return out;
}

}  // namespace hearth::egress
