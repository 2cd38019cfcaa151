#include <catch2/catch.hpp>

#include "controller/executions/MediaType.h"

using hearth::controller::mediaType;

TEST_CASE("a media type follows the first bytes, then the name, then whether it is text",
          "[unit][controller]") {
    CHECK(mediaType("plot.txt", "\x89PNG\r\n\x1a\n rest") == "image/png");
    CHECK(mediaType("a/plot.PNG", "") == "image/png");
    CHECK(mediaType("a.d/data.csv", "1,2") == "text/csv");
    CHECK(mediaType("book.xlsx", "PK\x03\x04") ==
          "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet");
    CHECK(mediaType("a.d/noending", "plain\n") == "text/plain");
    CHECK(mediaType("noending", std::string("\0\1", 2)) == "application/octet-stream");
    CHECK(mediaType("empty", "") == "application/octet-stream");
}
