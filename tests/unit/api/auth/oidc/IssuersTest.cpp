#include <cjose/base64.h>
#include <cjose/jwk.h>
#include <cjose/jws.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "api/auth/oidc/Issuers.h"
#include "base/Error.h"
#include "tests/support/Support.h"
#include "tests/unit/api/http/front/Harness.h"

using namespace hearth;
using namespace hearth::auth;
using namespace std::chrono_literals;
using controller::Authenticated;
using controller::Role;

namespace {

std::string encoded(std::string_view text) {
    cjose_err problem{};
    char* out = nullptr;
    std::size_t size = 0;
    REQUIRE(::cjose_base64url_encode(reinterpret_cast<const std::uint8_t*>(text.data()),
                                     text.size(), &out, &size, &problem));
    const std::unique_ptr<char, decltype(&std::free)> owned(out, std::free);
    return {out, size};
}

/// A key pair like that of an issuer in a test.
class Key {
public:
    Key(cjose_jwk_t* made, std::string id, Json extra = Json::object())
        : jwk_(made, ::cjose_jwk_release), id_(std::move(id)), extra_(std::move(extra)) {
        REQUIRE(jwk_);
        cjose_err problem{};
        REQUIRE(::cjose_jwk_set_kid(jwk_.get(), id_.data(), id_.size(), &problem));
    }
    static Key rsa(const std::string& id, std::size_t bits = 2'048, Json extra = Json::object()) {
        cjose_err problem{};
        return {::cjose_jwk_create_RSA_random(bits, nullptr, 0, &problem), id, std::move(extra)};
    }
    static Key ec(const std::string& id, cjose_jwk_ec_curve curve = CJOSE_JWK_EC_P_256) {
        cjose_err problem{};
        return {::cjose_jwk_create_EC_random(curve, &problem), id};
    }

    Json publicPart() const {
        cjose_err problem{};
        const std::unique_ptr<char, decltype(&std::free)> text(
            ::cjose_jwk_to_json(jwk_.get(), false, &problem), std::free);
        Json out = Json::parse(text.get());
        out.update(extra_);
        return out;
    }
    /// Signs with the algorithm that the header names.
    std::string sign(const Json& header, const Json& claims) const {
        return signText(header, claims.dump());
    }
    std::string signText(const Json& header, const std::string& payload) const {
        return signWith(jwk_.get(), header, payload);
    }
    static std::string signWith(const cjose_jwk_t* key, const Json& header,
                                const std::string& payload) {
        cjose_err problem{};
        const std::unique_ptr<cjose_header_t, decltype(&::cjose_header_release)> head(
            ::cjose_header_new(&problem), ::cjose_header_release);
        for (const auto& [name, value] : header.items()) {
            const bool set =
                value.is_string()
                    ? ::cjose_header_set(head.get(), name.c_str(),
                                         value.get_ref<const std::string&>().c_str(), &problem)
                    : ::cjose_header_set_raw(head.get(), name.c_str(), value.dump().c_str(),
                                             &problem);
            REQUIRE(set);
        }
        const std::unique_ptr<cjose_jws_t, decltype(&::cjose_jws_release)> made(
            ::cjose_jws_sign(key, head.get(), reinterpret_cast<const std::uint8_t*>(payload.data()),
                             payload.size(), &problem),
            ::cjose_jws_release);
        REQUIRE(made);
        const char* text = nullptr;
        REQUIRE(::cjose_jws_export(made.get(), &text, &problem));
        return text;
    }

private:
    std::shared_ptr<cjose_jwk_t> jwk_;
    std::string id_;
    Json extra_;
};

/// An issuer's server, with the issuer's configuration and a clock.
struct Place {
    Place() {
        config.issuer = served.url();
        config.audiences = {"hearth"};
        config.tenant_claim = "/tenant";
        config.roles = {{.claim = "/groups", .value = "ops", .role = Role::Operator},
                        {.claim = "/groups", .value = "root", .role = Role::Admin}};
    }
    api::Response answer(const std::string& path) {
        ++asked;
        api::Response response;

        if (away) {
            response.status = 503;
        } else if (path == "/.well-known/openid-configuration") {
            response.body = dumpJson({{"issuer", says.empty() ? served.url() : says},
                                      {"jwks_uri", served.url() + "/keys"}});
        } else {
            const MutexLock lock(mutex);
            response.body = dumpJson(Json{{"keys", keys}});
        }
        return response;
    }
    void show(const std::vector<const Key*>& shown) {
        const MutexLock lock(mutex);
        keys = Json::array();
        for (const Key* key : shown) keys.push_back(key->publicPart());
    }
    std::unique_ptr<Issuers> issuers() {
        return std::make_unique<Issuers>(std::vector{config}, clock, served.log);
    }
    Json claims(Json changes = Json::object()) const {
        const auto now =
            std::chrono::duration_cast<std::chrono::seconds>(clock.wall().time_since_epoch())
                .count();
        Json out{{"iss", config.issuer}, {"aud", "hearth"}, {"sub", "alice"},
                 {"tenant", "acme"},     {"iat", now},      {"exp", now + 600}};
        for (const auto& [name, value] : changes.items()) {
            if (value.is_null()) {
                out.erase(name);
            } else {
                out[name] = value;
            }
        }
        return out;
    }

    Mutex mutex;
    Json keys = Json::array();
    std::atomic<bool> away{false};
    std::atomic<int> asked{0};
    std::string says;
    api::Served served{[this](api::Request& request) { return answer(request.path()); }};
    ManualClock clock;
    IssuerConfig config;
};

/// Repeats the check until the keys have arrived, like an impatient client.
TokenVerdict ask(const Issuers& issuers, const std::string& token) {
    TokenVerdict verdict = KeysPending{};
    test::eventually([&] {
        verdict = issuers.check(token);
        return !std::holds_alternative<KeysPending>(verdict);
    });
    return verdict;
}

std::string faultOf(const Issuers& issuers, const std::string& token) {
    const TokenVerdict verdict = ask(issuers, token);
    const auto* const fault = std::get_if<TokenFault>(&verdict);
    return fault == nullptr ? "" : kTokenFaults.of(*fault);
}

}  // namespace

TEST_CASE("a token's claims give the principal", "[unit][auth][oidc]") {
    Place at;
    const Key rsa = Key::rsa("one");
    const Key ec = Key::ec("two");
    at.show({&rsa, &ec});
    const auto issuers = at.issuers();
    const auto who = [&](const std::string& token) {
        return std::get<Authenticated>(ask(*issuers, token));
    };
    const Authenticated alice = who(rsa.sign({{"alg", "RS256"}, {"kid", "one"}}, at.claims()));
    CHECK(alice.who.tenant == "acme");
    CHECK(alice.who.role == Role::User);
    CHECK(alice.who.token_id == "oidc:" + at.config.issuer.substr(7) + "#alice");
    CHECK(alice.right.expires == at.clock.wall() + 660s);
    const Authenticated bob = who(
        ec.sign({{"alg", "ES256"}, {"kid", "two"}, {"typ", "at+jwt"}},
                at.claims({{"aud", {"x", "hearth"}}, {"groups", {"a", "ops"}}, {"sub", "a b"}})));
    CHECK(bob.who.role == Role::Operator);
    CHECK(bob.who.token_id.find("#sha256:") != std::string::npos);
    const Authenticated root =
        who(ec.sign({{"alg", "ES256"}, {"kid", "two"}}, at.claims({{"groups", {"root", "ops"}}})));
    CHECK(root.who.role == Role::Admin);
    CHECK(at.asked == 2);
}

TEST_CASE("forged, expired and foreign tokens are refused, each with its reason",
          "[unit][auth][oidc]") {
    Place at;
    const Key rsa = Key::rsa("one");
    const Key ec = Key::ec("two");
    const Key stranger = Key::rsa("one");
    const Key weak = Key::rsa("weak", 1'024);
    const Key wide = Key::ec("wide", CJOSE_JWK_EC_P_384);
    const Key sealing = Key::rsa("sealing", 2'048, {{"use", "enc"}});
    const Key other = Key::rsa("other", 2'048, {{"alg", "RS512"}});
    at.show({&rsa, &ec, &weak, &wide, &sealing, &other});
    const auto issuers = at.issuers();
    const Json rs256{{"alg", "RS256"}, {"kid", "one"}};
    const std::string good = rsa.sign(rs256, at.claims());
    REQUIRE(faultOf(*issuers, good).empty());
    const auto claimed = [&](const Json& changes) {
        return faultOf(*issuers, rsa.sign(rs256, at.claims(changes)));
    };
    const auto now = at.claims()["iat"].get<std::int64_t>();

    // Signatures.
    CHECK(faultOf(*issuers, stranger.sign(rs256, at.claims())) == "jwt_signature");
    const std::string head = good.substr(0, good.find('.'));
    const std::string tail = good.substr(good.rfind('.'));
    CHECK(faultOf(*issuers, head + "." + encoded(at.claims({{"groups", {"root"}}}).dump()) +
                                tail) == "jwt_signature");
    CHECK(faultOf(*issuers, good.substr(0, good.rfind('.')) + "." + encoded("x")) ==
          "jwt_signature");
    CHECK(faultOf(*issuers, good.substr(0, good.rfind('.') + 1)) != "");

    // A token cannot choose the algorithm.
    for (const char* none : {"none", "None", "NONE", "nOnE", ""}) {
        const std::string text = encoded(Json{{"alg", none}, {"kid", "one"}}.dump()) + "." +
                                 encoded(at.claims().dump()) + ".";
        CHECK(faultOf(*issuers, text) == "jwt_algorithm");
        CHECK(faultOf(*issuers, text + tail.substr(1)) == "jwt_algorithm");
    }
    cjose_err problem{};
    const std::string secret = rsa.publicPart().dump();
    const std::unique_ptr<cjose_jwk_t, decltype(&::cjose_jwk_release)> shared(
        ::cjose_jwk_create_oct_spec(reinterpret_cast<const std::uint8_t*>(secret.data()),
                                    secret.size(), &problem),
        ::cjose_jwk_release);
    CHECK(faultOf(*issuers, Key::signWith(shared.get(), {{"alg", "HS256"}, {"kid", "one"}},
                                          at.claims().dump())) == "jwt_algorithm");
    CHECK(faultOf(*issuers, rsa.sign({{"alg", "RS512"}, {"kid", "one"}}, at.claims())) ==
          "jwt_algorithm");
    CHECK(faultOf(*issuers, rsa.sign({{"alg", "PS256"}, {"kid", "one"}}, at.claims())) ==
          "jwt_algorithm");
    CHECK(faultOf(*issuers, rsa.sign({{"alg", "RS256"}, {"kid", "two"}}, at.claims())) ==
          "jwt_key");
    CHECK(faultOf(*issuers, ec.sign({{"alg", "ES256"}, {"kid", "one"}}, at.claims())) == "jwt_key");

    // Keys that the token itself carries, and extensions.
    for (const Json& more :
         {Json{{"jwk", stranger.publicPart()}}, Json{{"jku", at.served.url() + "/keys"}},
          Json{{"x5u", "https://evil.example/x"}}, Json{{"crit", {"exp"}}}}) {
        Json header = rs256;
        header.update(more);
        CHECK(faultOf(*issuers, rsa.sign(header, at.claims())) == "jwt_header");
    }

    // Times.
    CHECK(claimed({{"exp", now - 61}}) == "jwt_expired");
    CHECK(claimed({{"exp", now - 59}}).empty());
    CHECK(claimed({{"exp", nullptr}}) == "jwt_expired");
    CHECK(claimed({{"exp", "tomorrow"}}) == "jwt_expired");
    CHECK(claimed({{"exp", 1e300}}) == "jwt_expired");
    CHECK(claimed({{"exp", -1}}) == "jwt_expired");
    CHECK(claimed({{"nbf", now + 61}}) == "jwt_not_yet");
    CHECK(claimed({{"nbf", now + 59}}).empty());
    CHECK(claimed({{"nbf", "x"}}) == "jwt_not_yet");
    CHECK(claimed({{"iat", now + 3600}}) == "jwt_not_yet");
    // Beyond the year 2262, where a clock of nanoseconds ends.
    for (const double late : {1e10, 3e10, 9.9e10, 253'402'300'799.0, 1e12, 1e300}) {
        CHECK(claimed({{"nbf", late}}) == "jwt_not_yet");
        CHECK(claimed({{"iat", late}}) == "jwt_not_yet");
    }
    CHECK(claimed({{"exp", 1e10}}).empty());
    CHECK(claimed({{"exp", 253'402'300'799}}).empty());

    // Audience and issuer.
    CHECK(claimed({{"aud", "other"}}) == "jwt_audience");
    CHECK(claimed({{"aud", nullptr}}) == "jwt_audience");
    CHECK(claimed({{"aud", {"hearth2", "Hearth"}}}) == "jwt_audience");
    CHECK(claimed({{"aud", {{"x", "hearth"}}}}) == "jwt_audience");
    CHECK(claimed({{"iss", at.config.issuer + "/"}}) == "jwt_issuer");
    CHECK(claimed({{"iss", "https://evil.example"}}) == "jwt_issuer");
    CHECK(claimed({{"iss", nullptr}}) == "jwt_issuer");
    CHECK(claimed({{"iss", {at.config.issuer}}}) == "jwt_issuer");

    CHECK(claimed({{"sub", nullptr}}) == "jwt_subject");

    // The tenant's claim.
    CHECK(claimed({{"tenant", nullptr}}) == "jwt_tenant");
    CHECK(claimed({{"tenant", "../etc"}}) == "jwt_tenant");
    CHECK(claimed({{"tenant", ""}}) == "jwt_tenant");
    CHECK(claimed({{"tenant", {"acme"}}}) == "jwt_tenant");

    // Texts that are not tokens.
    for (const std::string& text :
         {std::string(".."), std::string("a.b.c"), "." + good, good + ".x",
          encoded("{}") + ".." + tail, encoded("[]") + "." + encoded("{}") + tail,
          encoded(R"({"alg":"RS256","alg":"none"})") + "." + encoded("{}") + tail,
          head + "." + encoded("{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}") +
              tail,
          head + "." + encoded("\xff\xfe") + tail}) {
        CHECK(faultOf(*issuers, text) == "jwt_malformed");
    }

    // Unsuitable keys. Last, because the keys are not read again soon after an unknown one.
    for (const char* id : {"weak", "sealing", "other", "nobody"}) {
        CHECK(faultOf(*issuers, rsa.sign({{"alg", "RS256"}, {"kid", id}}, at.claims())) ==
              "jwt_unknown_key");
    }
    CHECK(faultOf(*issuers, ec.sign({{"alg", "ES256"}, {"kid", "wide"}}, at.claims())) ==
          "jwt_unknown_key");
    CHECK(faultOf(*issuers, rsa.sign({{"alg", "RS256"}}, at.claims())) == "jwt_unknown_key");
}

TEST_CASE("an unknown key id triggers a read of the issuer's keys, at most each half minute",
          "[unit][auth][oidc]") {
    Place at;
    const Key first = Key::rsa("first");
    const Key second = Key::rsa("second");
    at.show({&first});
    const auto issuers = at.issuers();
    const auto signedBy = [&](const Key& key, const std::string& id) {
        return key.sign({{"alg", "RS256"}, {"kid", id}}, at.claims());
    };
    REQUIRE(faultOf(*issuers, signedBy(first, "first")).empty());
    at.show({&second});
    CHECK(faultOf(*issuers, signedBy(second, "second")) == "jwt_unknown_key");
    const int before = at.asked;
    for (int i = 0; i < 10'000; ++i) {
        CHECK(std::holds_alternative<TokenFault>(issuers->check(signedBy(second, "second"))));
        if (i == 0) continue;
        break;
    }
    CHECK(at.asked == before);
    at.clock.advance(31s);
    CHECK(std::holds_alternative<KeysPending>(issuers->check(signedBy(second, "second"))));
    CHECK(faultOf(*issuers, signedBy(second, "second")).empty());
    CHECK(faultOf(*issuers, signedBy(first, "first")) == "jwt_unknown_key");
    const int after = at.asked;
    const std::string flood = signedBy(second, "nobody");
    for (int i = 0; i < 20'000; ++i) static_cast<void>(issuers->check(flood));
    CHECK(at.asked == after);
}

TEST_CASE("known keys stay valid while the issuer is down, and without keys no token is valid",
          "[unit][auth][oidc]") {
    Place at;
    const Key key = Key::rsa("one");
    at.show({&key});
    at.away = true;
    const auto issuers = at.issuers();
    const std::string token = key.sign({{"alg", "RS256"}, {"kid", "one"}}, at.claims());
    REQUIRE(test::eventually([&] { return at.asked > 0; }));
    CHECK(std::holds_alternative<KeysPending>(issuers->check(token)));
    at.away = false;
    at.clock.advance(31s);
    CHECK(faultOf(*issuers, token).empty());
    at.away = true;
    at.clock.advance(120s);
    static_cast<void>(issuers->check(key.sign({{"alg", "RS256"}, {"kid", "new"}}, at.claims())));
    const int asked = at.asked;
    REQUIRE(test::eventually([&] { return at.asked > asked || at.asked > 3; }));
    CHECK(faultOf(*issuers, token).empty());
}

TEST_CASE("keys of an issuer that reports another name are not used", "[unit][auth][oidc]") {
    Place at;
    const Key key = Key::rsa("one");
    at.show({&key});
    at.says = "https://other.example";
    const auto issuers = at.issuers();
    REQUIRE(test::eventually([&] { return at.asked > 0; }));
    CHECK(std::holds_alternative<KeysPending>(
        issuers->check(key.sign({{"alg", "RS256"}, {"kid", "one"}}, at.claims()))));
}

TEST_CASE("a file of issuers is read whole, and each error in it is reported",
          "[unit][auth][oidc]") {
    const std::vector<IssuerConfig> all = parseIssuers(Json::parse(R"({"issuers": [
        {"issuer": "https://login.example", "audience": ["a", "b"], "tenant": "acme", "role": "none",
         "roles": [{"claim": "/groups", "value": "x", "role": "operator"}], "algorithms": ["ES256"]},
        {"issuer": "http://127.0.0.1:9", "audience": "c", "tenantClaim": "/kubernetes.io/namespace"}]})"));
    REQUIRE(all.size() == 2);
    CHECK(all[0].audiences == std::vector<std::string>{"a", "b"});
    CHECK_FALSE(all[0].role);
    CHECK(all[0].algorithms == std::vector{SigningAlgorithm::Es256});
    CHECK(all[1].role == Role::User);
    try {
        parseIssuers(Json::parse(
            R"({"issuers": [{"issuer": "http://login.example", "tenant": "a", "tenantClaim": "x",
            "role": "god", "algorithms": ["HS256"], "roles": [{"claim": "/a"}], "extra": 1}]})"));
        FAIL("taken");
    } catch (const Error& e) {
        std::set<std::string> faults;
        for (const FieldError& fault : e.fields()) faults.insert(fault.pointer);
        for (const char* at :
             {"/issuers/0/issuer", "/issuers/0/audience", "/issuers/0/tenant",
              "/issuers/0/tenantClaim", "/issuers/0/role", "/issuers/0/algorithms/0",
              "/issuers/0/roles/0/value", "/issuers/0/roles/0/role", "/issuers/0/extra"}) {
            INFO(at);
            CHECK(faults.contains(at));
        }
    }
}
