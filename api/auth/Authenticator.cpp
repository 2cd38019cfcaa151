#include "api/auth/Authenticator.h"

#include <algorithm>

#include "api/auth/WorkspaceToken.h"
#include "base/Error.h"
#include "base/http/Url.h"

namespace hearth::auth {
namespace {

/// The longest accepted token; tokens from issuers are long because they contain groups.
constexpr std::size_t kLongestToken = 8192;

/// The token68 alphabet of RFC 6750.
bool isTokenCharacter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~+/=").find(c) != std::string_view::npos;
}

[[noreturn]] void refuse(const char* message, const char* hint) {
    throw Error(ErrorCode::Unauthenticated, message).hint(hint);
}

[[noreturn]] void refuseAll() {
    refuse("this server had tokens and has none now, so it serves nobody",
           "On the server: hearth token create --role admin --offline; then start it again");
}

/// Callers behind a proxy look like loopback; the header that a proxy adds distinguishes them.
bool cameThroughProxy(const api::Request& request) {
    static constexpr const char* kAdded[] = {"Forwarded",        "X-Forwarded-For",
                                             "X-Forwarded-Host", "X-Forwarded-Proto",
                                             "X-Forwarded-Port", "X-Forwarded-Server",
                                             "X-Real-IP",        "CF-Connecting-IP",
                                             "True-Client-IP",   "Via"};
    return std::any_of(std::begin(kAdded), std::end(kAdded),
                       [&](const char* name) { return request.header(name).has_value(); });
}

/// Returns the token of an Authorization header; it lives as long as the header.
std::string_view bearerToken(std::string_view header) {
    const std::size_t blank = header.find(' ');
    if (!equalsIgnoreCase(header.substr(0, blank), "Bearer") || blank == std::string_view::npos) {
        refuse("the Authorization header is not a bearer token",
               "Send \"Authorization: Bearer <token>\"");
    }
    const std::string_view token = trim(header.substr(blank));
    if (token.empty() || token.size() > kLongestToken ||
        !std::all_of(token.begin(), token.end(), isTokenCharacter)) {
        refuse("the bearer token is malformed", "Send \"Authorization: Bearer <token>\"");
    }
    return token;
}

controller::Principal tracedBy(const api::Request& request, controller::Principal who) {
    who.trace = request.trace();
    return who;
}

}  // namespace

controller::Principal Authenticator::bearer(api::Request& request, std::string_view token) const {
    if (hasIssuers() && looksLikeJwt(token)) return issued(request, token);
    if (!tokens_.configured() && !tokens_.open() && !hasIssuers()) refuseAll();
    if (const std::optional<WorkspaceGrant> grant = readWorkspaceToken(key_, token)) {
        controller::Principal who;
        who.tenant = grant->tenant;
        who.token_id = grant->workspace;
        who.workspace = grant->workspace;
        request.actsFor(who.tenant, who.token_id, {});  // its right ends with the workspace
        return tracedBy(request, std::move(who));
    }
    const std::optional<controller::Authenticated> known = tokens_.authenticate(token);
    if (!known) {
        refuse("the token is unknown or has expired",
               "Make one with `hearth token create`, or ask an administrator");
    }
    request.actsFor(known->who.tenant, known->who.token_id, known->right);
    return tracedBy(request, known->who);
}

controller::Principal Authenticator::issued(api::Request& request, std::string_view token) const {
    TokenVerdict verdict = issuers_->check(token);
    if (std::holds_alternative<KeysPending>(verdict)) {
        throw Error(ErrorCode::Unavailable, "the keys of the token's issuer are being read")
            .hint("try again in a moment")
            .retryAfter(std::chrono::seconds(1));
    }
    if (const auto* const fault = std::get_if<TokenFault>(&verdict)) {
        request.refusedFor(kTokenFaults.of(*fault));
        refuse("the token is not accepted",
               "Get a new one from your issuer; the server's audit log has the reason");
    }
    auto& known = std::get<controller::Authenticated>(verdict);
    request.actsFor(known.who.tenant, known.who.token_id, known.right);
    return tracedBy(request, std::move(known.who));
}

controller::Principal Authenticator::authenticate(api::Request& request) const {
    controller::Principal who = authenticateAny(request);
    if (who.workspace.empty()) return who;
    throw Error(ErrorCode::Forbidden, "this token is for one workspace only")
        .hint("Use it for REST calls below /v1/workspaces/" + who.workspace);
}

controller::Principal Authenticator::authenticateAny(api::Request& request) const {
    const std::optional<std::string> header = request.header("Authorization");
    if (resource_ != nullptr) request.challengedBy(resource_->challenge(header.has_value()));
    if (header) {
        return bearer(request, bearerToken(*header));
    }
    if (tokens_.configured() || hasIssuers()) {
        refuse("a bearer token is needed", "Send \"Authorization: Bearer <token>\"");
    }
    const std::optional<controller::Authenticated> anybody = tokens_.anonymous();
    if (!anybody) refuseAll();
    if (!request.peerIsLoopback()) {
        refuse("without tokens only loopback callers are served",
               "Make a token with `hearth token create` on the server");
    }
    if (cameThroughProxy(request)) {
        refuse("without tokens no caller behind a proxy is served",
               "Make a token with `hearth token create --role admin` on the server, or call it "
               "without the proxy");
    }
    request.actsFor(anybody->who.tenant, anybody->who.token_id, anybody->right);
    return tracedBy(request, anybody->who);
}

}  // namespace hearth::auth
