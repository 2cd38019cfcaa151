#include <catch2/catch.hpp>

#include "api/auth/Authenticator.h"
#include "base/Error.h"
#include "tests/support/FakeHttp.h"
#include "tests/support/FakeTokens.h"

using namespace hearth;
using controller::Role;
using hearth::test::FakeRequest;
using hearth::test::FakeTokens;

namespace {

FakeRequest request(const std::string& authorization = {}) {
    FakeRequest out("GET", "/v1/pools");
    if (!authorization.empty()) out.with("Authorization", authorization);
    return out;
}

ErrorCode refused(const FakeTokens& tokens, FakeRequest from) {
    try {
        auth::Authenticator(tokens).authenticate(from);
    } catch (const Error& error) {
        CHECK(!error.hint().empty());
        return error.code();
    }
    return ErrorCode::Internal;
}

}  // namespace

TEST_CASE("without tokens only loopback callers are served, as admin of the default tenant",
          "[unit][auth]") {
    FakeTokens tokens;
    FakeRequest inside = request();
    const controller::Principal who = auth::Authenticator(tokens).authenticate(inside);
    CHECK(who.tenant == "default");
    CHECK(who.role == Role::Admin);
    FakeRequest outside = request();
    outside.from("192.0.2.1", false);
    CHECK(refused(tokens, outside) == ErrorCode::Unauthenticated);
}

TEST_CASE("authentication hands the caller's access right to the request", "[unit][auth]") {
    struct Told final : FakeRequest {
        using FakeRequest::FakeRequest;
        void actsFor(const std::string&, const std::string&, AccessRight given) override {
            right = std::move(given);
        }
        std::optional<AccessRight> right;
    };
    ManualClock clock;
    FakeTokens tokens;
    Told anybody("GET", "/v1/pools");
    auth::Authenticator(tokens).authenticate(anybody);
    tokens.known["abc"] = {"acme", Role::User, "tk_1"};
    Told known("GET", "/v1/pools");
    known.with("Authorization", "Bearer abc");
    auth::Authenticator(tokens).authenticate(known);
    for (const Told* request : {&anybody, &known}) {
        REQUIRE(request->right);
        CHECK(request->right->holds(clock));
    }
    tokens.withdrawal.request_stop();
    CHECK_FALSE(anybody.right->holds(clock));
    CHECK_FALSE(known.right->holds(clock));
}

TEST_CASE("an instance that lost its tokens serves nobody and says how to make one",
          "[unit][auth]") {
    FakeTokens tokens;
    tokens.had_some = true;
    for (FakeRequest from : {request(), request("Bearer old")}) {
        try {
            auth::Authenticator(tokens).authenticate(from);
            FAIL("it was served");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::Unauthenticated);
            CHECK(error.hint().find("hearth token create --role admin --offline") !=
                  std::string::npos);
        }
    }
}

TEST_CASE("without tokens no caller behind a proxy is served", "[unit][auth]") {
    FakeTokens tokens;
    for (const char* added :
         {"Forwarded", "X-Forwarded-For", "x-forwarded-host", "X-Real-IP", "Via"}) {
        INFO(added);
        FakeRequest proxied = request();
        proxied.with(added, "192.0.2.1");
        CHECK(refused(tokens, proxied) == ErrorCode::Unauthenticated);
    }
    tokens.known["abc"] = {"acme", Role::User, "tk_1"};
    FakeRequest bearing = request("Bearer abc");
    bearing.with("X-Forwarded-For", "192.0.2.1");
    CHECK(auth::Authenticator(tokens).authenticate(bearing).tenant == "acme");
}

TEST_CASE("a stale token does not fall back to loopback admin", "[unit][auth]") {
    FakeTokens tokens;
    CHECK(refused(tokens, request("Bearer old")) == ErrorCode::Unauthenticated);
}

TEST_CASE("a known token gives its principal, whatever the scheme's case", "[unit][auth]") {
    FakeTokens tokens;
    tokens.known["abc.-_~+/="] = {"acme", Role::User, "tk_1"};
    for (const char* scheme : {"Bearer ", "bearer ", "BEARER   "}) {
        FakeRequest bearing = request(std::string(scheme) + "abc.-_~+/=");
        const controller::Principal who = auth::Authenticator(tokens).authenticate(bearing);
        CHECK(who.tenant == "acme");
        CHECK(who.token_id == "tk_1");
        CHECK(who.trace.trace_id == bearing.traceId());
    }
}

TEST_CASE("an instance with tokens refuses a request without a token", "[unit][auth]") {
    FakeTokens tokens;
    tokens.known["abc"] = {"acme", Role::User, "tk_1"};
    CHECK(refused(tokens, request()) == ErrorCode::Unauthenticated);
    for (const std::string& header :
         {std::string("Bearer"), std::string("Bearer "), std::string("Basic abc"),
          std::string("abc"), std::string("Bearer abd"), std::string("Bearer a bc"),
          std::string("Bearer ab\"c"), "Bearer " + std::string(5000, 'a')}) {
        INFO(header.substr(0, 40));
        CHECK(refused(tokens, request(header)) == ErrorCode::Unauthenticated);
    }
}
