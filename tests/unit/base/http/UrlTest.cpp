#include <catch2/catch.hpp>

#include "base/http/Url.h"

using namespace hearth;

TEST_CASE("names are encoded for a path", "[unit][http]") {
    CHECK(percentEncode("hearth/a:1") == "hearth%2Fa%3A1");
    CHECK(percentEncode("a b/c", true) == "a%20b/c");
    CHECK(percentEncode("az-09._~") == "az-09._~");
}
