#include <catch2/catch.hpp>

#include "api/http/admission/HostRules.h"

using namespace hearth;
using namespace hearth::api;

namespace {

HostRules::Verdict verdict(const std::string& method, const std::string& fields,
                           const std::string& host = "localhost:8080") {
    static const HostRules rules(true, {"localhost", "127.0.0.1"}, {"https://app.example"});
    RequestHead head;
    REQUIRE(head.parse(method + " /v1/drain HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n",
                       {}) == nullptr);
    return rules.check(head);
}

}  // namespace

TEST_CASE("requests from own pages, configured origins or no page are allowed", "[unit][http]") {
    using Verdict = HostRules::Verdict;
    CHECK(verdict("POST", "") == Verdict::Allowed);
    CHECK(verdict("POST", "Origin: http://localhost:8080\r\n") == Verdict::Allowed);
    CHECK(verdict("POST", "Origin: https://app.example\r\n") == Verdict::Allowed);
    CHECK(verdict("POST", "Origin: http://localhost:9999\r\n") == Verdict::BadOrigin);
    CHECK(verdict("POST", "Origin: null\r\n") == Verdict::BadOrigin);
    CHECK(verdict("POST", "", "evil.example") == Verdict::BadHost);
}

TEST_CASE("a cross-site change is refused even without an Origin header", "[unit][http]") {
    using Verdict = HostRules::Verdict;
    for (const char* site : {"cross-site", "same-site"}) {
        const std::string field = std::string("Sec-Fetch-Site: ") + site + "\r\n";
        CHECK(verdict("POST", field) == Verdict::BadOrigin);
        CHECK(verdict("DELETE", field) == Verdict::BadOrigin);
        CHECK(verdict("GET", field) == Verdict::Allowed);  // a link to one of Hearth's pages
        CHECK(verdict("POST", field + "Origin: https://app.example\r\n") == Verdict::Allowed);
    }
    CHECK(verdict("POST", "Sec-Fetch-Site: same-origin\r\n") == Verdict::Allowed);
    CHECK(verdict("POST", "Sec-Fetch-Site: none\r\n") == Verdict::Allowed);
}
