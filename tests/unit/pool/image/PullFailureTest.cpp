#include <catch2/catch.hpp>

#include "pool/image/PullFailure.h"

using namespace hearth;
using pool::image::pullFailure;

TEST_CASE("the reason of a failed pull follows from the program's output", "[unit][image]") {
    const auto code = [](const char* said) { return pullFailure("a:1", said, said).code(); };
    CHECK(code("dial tcp 127.0.0.1:1: connect: connection refused") == ErrorCode::Unavailable);
    CHECK(code("lookup registry.example: no such host") == ErrorCode::Unavailable);
    CHECK(code("http: server gave HTTP response to HTTPS client") == ErrorCode::Unavailable);
    CHECK(code("manifest unknown: manifest unknown") == ErrorCode::NotFound);
    CHECK(code("requested access to the resource is denied") == ErrorCode::NotFound);
    CHECK(code("write /x: no space left on device") == ErrorCode::DiskFull);
    CHECK(code("something else") == ErrorCode::InvalidArgument);
    CHECK(std::string(pullFailure("a:1", "x", "why").what()).find("why") != std::string::npos);
}
