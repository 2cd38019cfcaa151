#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/egress/credentials/SecretDirectory.h"
#include "controller/egress/credentials/TlsAuthority.h"
#include "controller/egress/policy/Credential.h"

namespace hearth::egress {

/// The credentials of one request, with their present values.
struct CredentialGrant {
    std::vector<std::pair<std::string, std::string>> headers;  ///< replace the request's own
    std::vector<std::pair<std::string, std::string>> query;    ///< replace the request's own
    std::vector<std::string> hidden;  ///< values that must not come back, in any spelling
};

/// The credentials of one workspace, and the authority that its programs trust. Thread-safe.
class Keyring {
public:
    /// `secrets` must outlive it. `authority` is null if no credential is for TLS.
    Keyring(std::vector<Credential> credentials, const SecretDirectory& secrets,
            std::unique_ptr<TlsAuthority> authority);

    const std::vector<Credential>& credentials() const noexcept { return credentials_; }
    /// Null if no credential is for TLS.
    TlsAuthority* authority() const noexcept { return authority_.get(); }

    /// True if requests to this destination get a credential.
    bool covers(const Destination& destination, bool tls) const;
    /// Throws Refused if a secret cannot be read.
    CredentialGrant grant(const Destination& destination, bool tls) const;

private:
    const std::vector<Credential> credentials_;
    const SecretDirectory& secrets_;
    const std::unique_ptr<TlsAuthority> authority_;
};

/// Returns "path?query" with these parameters; they replace existing ones of the same names.
std::string withQuery(const std::string& target,
                      const std::vector<std::pair<std::string, std::string>>& query);

}  // namespace hearth::egress
