#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "base/Error.h"
#include "controller/egress/policy/ClaimSeal.h"

namespace hearth::egress {

TEST_CASE("a claim's sealed network opens only for this claim and server", "[unit][egress]") {
    const ClaimSeal seal("server's key");
    const ClaimReach reach{NetworkMode::Egress,
                           {{"*.example"}, {"narrow.example"}},
                           Json{{"credentials", {{{"value", "very-secret"}}}}},
                           "red",
                           "ws_1"};
    const std::string sealed = seal.close(reach, "cl_1");
    const ClaimReach again = seal.open(sealed, "cl_1");
    CHECK(again.mode == reach.mode);
    CHECK(again.allow == reach.allow);
    CHECK(again.keys == reach.keys);
    CHECK(again.tenant == "red");
    CHECK(again.workspace == "ws_1");
    CHECK(sealed.find("very-secret") == std::string::npos);
    CHECK(sealed.find("narrow") == std::string::npos);
    CHECK_THROWS_AS(seal.open(sealed, "cl_2"), Error);
    CHECK_THROWS_AS(ClaimSeal("another key").open(sealed, "cl_1"), Error);
    CHECK_THROWS_AS(seal.open("x" + sealed, "cl_1"), Error);
    CHECK_THROWS_AS(seal.open("", "cl_1"), Error);
}

TEST_CASE("a claim without a keyring has none when it is opened", "[unit][egress]") {
    const ClaimSeal seal("server's key");
    const ClaimReach mirror = seal.open(seal.close({NetworkMode::Mirror, {}}, "cl_1"), "cl_1");
    CHECK(mirror.mode == NetworkMode::Mirror);
    CHECK(mirror.keys.is_null());
}

TEST_CASE("a proof holds for one text, one claim and one server", "[unit][egress]") {
    const ClaimSeal seal("server's key");
    const std::string proof = seal.prove("text", "cl_1");
    CHECK(proof == seal.prove("text", "cl_1"));
    CHECK(proof != seal.prove("text", "cl_2"));
    CHECK(proof != seal.prove("texts", "cl_1"));
    CHECK(proof != ClaimSeal("another key").prove("text", "cl_1"));
}

}  // namespace hearth::egress
