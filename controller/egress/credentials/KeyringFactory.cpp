#include "controller/egress/credentials/KeyringFactory.h"

#include <algorithm>

#include "base/Error.h"

namespace hearth::egress {
namespace {

constexpr std::size_t kMostOfClaim = 16;
/// The most bytes of all values of a claim: they travel in its note, which is bounded.
constexpr std::size_t kMostBytes = 16U << 10U;

std::vector<std::string> hostsOf(const std::vector<Credential>& credentials) {
    std::vector<std::string> out;
    for (const Credential& credential : credentials) {
        const std::string& host = credential.destination.host;
        if (credential.tls && std::find(out.begin(), out.end(), host) == out.end()) {
            out.push_back(host);
        }
    }
    return out;
}

}  // namespace

KeyringFactory::Made KeyringFactory::make(std::vector<Credential> of_pool,
                                          const std::vector<Credential>& of_claim) const {
    std::vector<Credential> all = std::move(of_pool);
    all.insert(all.end(), of_claim.begin(), of_claim.end());
    if (all.empty()) return {};
    Json kept{{"credentials", Json::array()}};
    for (const Credential& credential : of_claim) {
        Json one = credentialJson(credential);
        if (!credential.value.empty()) one["value"] = credential.value;
        if (!credential.tenant.empty()) kept["tenant"] = credential.tenant;
        kept["credentials"].push_back(std::move(one));
    }
    std::unique_ptr<TlsAuthority> authority;
    if (const std::vector<std::string> hosts = hostsOf(all); !hosts.empty()) {
        authority = std::make_unique<TlsAuthority>(hosts);
        kept["authority"] = authority->privatePem();
    }
    return {std::make_shared<Keyring>(std::move(all), secrets_, std::move(authority)),
            std::move(kept)};
}

std::shared_ptr<const Keyring> KeyringFactory::again(std::vector<Credential> of_pool,
                                                     const Json& kept) const {
    std::vector<Credential> all = std::move(of_pool);
    std::unique_ptr<TlsAuthority> authority;
    if (!kept.is_null()) {
        const auto of_claim =
            readClaimCredentials(kept.at("credentials"), kept.value("tenant", ""), "/credentials");
        for (const Credential& one : of_claim) {  // the pool may now have one for the same requests
            if (std::none_of(all.begin(), all.end(),
                             [&](const Credential& other) { return collide(one, other); })) {
                all.push_back(one);
            }
        }
        if (kept.contains("authority")) {
            authority = TlsAuthority::fromPem(kept.at("authority").get<std::string>());
        }
    }
    if (all.empty()) return nullptr;
    return std::make_shared<Keyring>(std::move(all), secrets_, std::move(authority));
}

std::vector<Credential> readClaimCredentials(const Json& list, const std::string& tenant,
                                             const std::string& pointer) {
    std::vector<Credential> out;
    std::vector<FieldError> errors;
    std::size_t bytes = 0;
    if (!list.is_array() || list.size() > kMostOfClaim) {
        errors.push_back({pointer, "must be a list of at most " + std::to_string(kMostOfClaim)});
    } else {
        for (std::size_t i = 0; i < list.size(); ++i) {
            const std::string here = pointer + "/" + std::to_string(i);
            Credential one = readCredential(list[i], CredentialSource::Claim, here, errors);
            if (one.value.empty()) one.tenant = tenant;
            bytes += one.value.size();
            if (std::any_of(out.begin(), out.end(),
                            [&](const Credential& other) { return collide(one, other); })) {
                errors.push_back({here, "sets the same as another one"});
            }
            out.push_back(std::move(one));
        }
    }
    if (bytes > kMostBytes) errors.push_back({pointer, "have more than 16 KiB of values"});
    if (errors.empty()) return out;
    Error wrong(ErrorCode::InvalidArgument, "the credentials cannot be used");
    for (FieldError& error : errors) wrong.field(error.pointer, error.reason);
    throw wrong;
}

}  // namespace hearth::egress
