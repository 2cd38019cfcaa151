#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/http/RequestHead.h"
#include "controller/egress/credentials/Keyring.h"
#include "controller/egress/policy/Refused.h"
#include "controller/egress/policy/WorkspaceEgress.h"
#include "controller/egress/transport/ByteStream.h"
#include "controller/egress/transport/Curl.h"
#include "controller/egress/transport/Dialer.h"

namespace hearth::egress {

/// Sends requests that get credentials, by libcurl: the Dialer makes the connection, the server's
/// certificate is verified, and the answer passes a SecretMasker. Belongs to one tenant connection;
/// keeps its own outside connection for the next request. Used by one thread.
class AuthorizedCall {
public:
    /// `ca_file`: extra authorities to trust, besides the system's; empty: none. `gone` reports
    /// whether the tenant's side has hung up; it is called about once a second.
    AuthorizedCall(const Dialer& dialer, WorkspaceEgress& egress, std::string ca_file,
                   std::function<bool()> gone)
        : dialer_(dialer), egress_(egress), ca_file_(std::move(ca_file)), gone_(std::move(gone)) {}

    struct Request {
        const RequestHead& head;
        const Destination& destination;
        bool tls;
        const CredentialGrant& grant;
    };

    /// Sends the request with its body (`ahead`, then the rest from `inside`) and writes the answer
    /// to `inside`. Returns whether another request may follow on that connection. Throws Refused
    /// before any answer, StreamBroken after.
    bool perform(const Request& request, ByteStream& inside, std::string& ahead,
                 EgressEntry& entry);

private:
    struct Transfer;
    void prepare(const Request& request, Transfer& transfer, CurlList& headers, CurlList& names);

    const Dialer& dialer_;
    WorkspaceEgress& egress_;
    const std::string ca_file_;
    const std::function<bool()> gone_;
    CurlHandle curl_;
};

}  // namespace hearth::egress
