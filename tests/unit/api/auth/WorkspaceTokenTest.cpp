#include <catch2/catch.hpp>

#include "api/auth/Authenticator.h"
#include "api/auth/WorkspaceToken.h"
#include "base/Error.h"
#include "tests/support/FakeHttp.h"
#include "tests/support/FakeTokens.h"

using namespace hearth;
using controller::Role;
using hearth::test::FakeRequest;
using hearth::test::FakeTokens;

namespace {

const std::string kKey(32, 'k');
const auth::WorkspaceGrant kGrant{"acme", "ws_0123"};

FakeRequest bearing(const std::string& token) {
    FakeRequest out("GET", "/v1/pools");
    out.with("Authorization", "Bearer " + token);
    return out;
}

ErrorCode refusalOf(const auth::Authenticator& by, FakeRequest request, bool any) {
    try {
        any ? by.authenticateAny(request) : by.authenticate(request);
    } catch (const Error& e) {
        return e.code();
    }
    return ErrorCode::Internal;
}

}  // namespace

TEST_CASE("a workspace token yields its tenant and workspace only with the right key",
          "[unit][auth]") {
    const std::string token = auth::workspaceToken(kKey, kGrant);
    const auto read = auth::readWorkspaceToken(kKey, token);
    REQUIRE(read);
    CHECK(read->tenant == "acme");
    CHECK(read->workspace == "ws_0123");
    CHECK_FALSE(auth::readWorkspaceToken(std::string(32, 'x'), token));
    CHECK_FALSE(auth::readWorkspaceToken("", token));
    CHECK_FALSE(auth::readWorkspaceToken(kKey, token.substr(4)));
    for (std::size_t i = 0; i < token.size(); ++i) {
        std::string forged = token;
        forged[i] = forged[i] == 'A' ? 'B' : 'A';
        const auto grant = auth::readWorkspaceToken(kKey, forged);
        // The last character of a part may have bits that carry nothing.
        CHECK((!grant || (grant->tenant == "acme" && grant->workspace == "ws_0123")));
    }
    for (const char* rude : {"", "hws_", "hws_.", "hws_e30.", "hws_e30.AA", "hws_%%.AA"}) {
        CHECK_FALSE(auth::readWorkspaceToken(kKey, rude));
    }
}

TEST_CASE("a workspace token makes its bearer a user of that workspace where that is enforced",
          "[unit][auth]") {
    FakeTokens tokens;
    const auth::Authenticator authenticator(tokens, kKey);
    const std::string token = auth::workspaceToken(kKey, kGrant);
    FakeRequest request = bearing(token);
    const controller::Principal who = authenticator.authenticateAny(request);
    CHECK(who.tenant == "acme");
    CHECK(who.role == Role::User);
    CHECK(who.workspace == "ws_0123");
    CHECK(refusalOf(authenticator, bearing(token), false) == ErrorCode::Forbidden);
    CHECK(refusalOf(authenticator, bearing(token + "x"), true) == ErrorCode::Unauthenticated);
    // A server without a key for such tokens accepts none of them.
    CHECK(refusalOf(auth::Authenticator(tokens), bearing(token), true) ==
          ErrorCode::Unauthenticated);
}
