#include <catch2/catch.hpp>
#include <vector>

#include "base/http/ByteRange.h"

namespace hearth {

TEST_CASE("a range header means what RFC 9110 says", "[unit][base]") {
    struct Row {
        const char* header;
        ByteRange::Kind kind;
        std::uint64_t offset;
        std::uint64_t length;
    };
    const std::vector<Row> rows{
        {"bytes=0-0", ByteRange::Kind::Part, 0, 1},
        {"Bytes=2-", ByteRange::Kind::Part, 2, 8},
        {"bytes=-3", ByteRange::Kind::Part, 7, 3},
        {"bytes=-30", ByteRange::Kind::Part, 0, 10},
        {"bytes=5-900", ByteRange::Kind::Part, 5, 5},
        {"bytes=-0", ByteRange::Kind::Unsatisfiable, 0, 0},
        {"bytes=10-", ByteRange::Kind::Unsatisfiable, 0, 0},
        {"bytes=3-2", ByteRange::Kind::Whole, 0, 10},
        {"bytes=", ByteRange::Kind::Whole, 0, 10},
        {"bytes=-", ByteRange::Kind::Whole, 0, 10},
        {"bytes=a-b", ByteRange::Kind::Whole, 0, 10},
        {"bytes=18446744073709551615-", ByteRange::Kind::Unsatisfiable, 0, 0},
        {"bytes=99999999999999999999999-", ByteRange::Kind::Unsatisfiable, 0, 0},
        {"bytes=99999999999999999999999-5", ByteRange::Kind::Whole, 0, 10},
        {"bytes=5-99999999999999999999999", ByteRange::Kind::Part, 5, 5},
        {"bytes=-99999999999999999999999", ByteRange::Kind::Part, 0, 10},
        {"bytes=99999999999999999999999x-", ByteRange::Kind::Whole, 0, 10},
        {"lines=0-1", ByteRange::Kind::Whole, 0, 10},
    };
    for (const Row& row : rows) {
        INFO(row.header);
        const ByteRange range = parseRange(row.header, 10);
        CHECK(range.kind == row.kind);
        CHECK(range.offset == row.offset);
        CHECK(range.length == row.length);
    }
}

}  // namespace hearth
