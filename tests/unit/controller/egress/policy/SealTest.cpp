#include <catch2/catch.hpp>

#include "controller/egress/policy/Seal.h"

namespace hearth {

TEST_CASE("a sealed text opens only with the same key and context", "[unit][base]") {
    const std::string key(32, 'k');
    for (const std::string& plain :
         {std::string(), std::string("secret"), std::string(70'000, 'x')}) {
        const std::string sealed = seal(key, "cl_1", plain);
        CHECK(unseal(key, "cl_1", sealed) == plain);
        CHECK(seal(key, "cl_1", plain) != sealed);
        CHECK(unseal(key, "cl_2", sealed) == std::nullopt);
        CHECK(unseal(std::string(32, 'j'), "cl_1", sealed) == std::nullopt);
        for (const std::size_t at : {std::size_t{0}, sealed.size() / 2, sealed.size() - 1}) {
            std::string other = sealed;
            other[at] = other[at] == 'A' ? 'B' : 'A';
            CHECK(unseal(key, "cl_1", other) == std::nullopt);
        }
        CHECK(unseal(key, "cl_1", sealed.substr(0, sealed.size() - 4)) == std::nullopt);
    }
    CHECK(unseal(key, "", "") == std::nullopt);
    CHECK(unseal(key, "", "not base64!") == std::nullopt);
    CHECK_THROWS(seal("short", "", "x"));
}

}  // namespace hearth
