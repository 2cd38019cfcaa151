#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/http/Handler.h"

namespace hearth::auth {

/// Shows MCP clients the issuers whose tokens they need here (RFC 9728): documents that anybody may
/// read, and the challenge that names them. Only if issuers and a public URL are configured: the
/// URL is never taken from a request. Thread-safe.
class ProtectedResource {
public:
    /// `url`: where clients reach the server; empty: nothing is announced.
    ProtectedResource(std::string url, const std::vector<std::string>& issuers);

    /// The answer, if the request is for such a document.
    std::optional<api::Response> answer(const api::Request& request) const;
    /// The value of WWW-Authenticate, which lives as long as this object; `wrong`: a token was sent
    /// but refused.
    const std::string& challenge(bool wrong) const { return wrong ? wrong_ : missing_; }

private:
    const std::string url_;
    const std::string missing_;
    const std::string wrong_;
    const std::string document_;
};

}  // namespace hearth::auth
