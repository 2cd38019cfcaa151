#include "api/auth/Authenticator.h"

#include <algorithm>

#include "base/Error.h"
#include "base/http/Url.h"

namespace hearth::auth {
namespace {

constexpr std::size_t kLongestToken = 4096;

/// The token68 alphabet of RFC 6750.
bool isTokenCharacter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~+/=").find(c) != std::string_view::npos;
}

[[noreturn]] void refuse(const char* message, const char* hint) {
    throw Error(ErrorCode::Unauthenticated, message).hint(hint);
}

/// The token of an Authorization header; its lifetime is the header's.
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

}  // namespace

controller::Principal Authenticator::authenticate(api::Request& request) const {
    if (const std::optional<std::string> header = request.header("Authorization")) {
        std::optional<controller::Principal> who = tokens_.authenticate(bearerToken(*header));
        if (!who) {
            refuse("the token is unknown or has expired",
                   "Make one with `hearth token create`, or ask an administrator");
        }
        request.actsFor(who->tenant);
        return *who;
    }
    if (tokens_.configured()) {
        refuse("a bearer token is needed", "Send \"Authorization: Bearer <token>\"");
    }
    if (!request.peerIsLoopback()) {
        refuse("without tokens only loopback callers are served",
               "Make a token with `hearth token create` on the server");
    }
    controller::Principal who{"default", controller::Role::Admin, ""};
    request.actsFor(who.tenant);
    return who;
}

}  // namespace hearth::auth
