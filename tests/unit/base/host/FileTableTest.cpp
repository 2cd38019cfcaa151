#include <catch2/catch.hpp>

#include "base/host/FileTable.h"

using namespace hearth;

TEST_CASE("the table of open files is read as the kernel writes it", "[unit][base]") {
    const std::optional<FileTable> table = parseFileTable("948\t0\t2466177\n");
    REQUIRE(table);
    CHECK(table->open == 948);
    CHECK(table->most == 2'466'177);
    // A machine without a limit.
    CHECK(parseFileTable("948\t0\t9223372036854775807\n")->most == 9'223'372'036'854'775'807U);
    for (const char* text : {"", "948", "948\t0", "948\t0\t0\n", "a b c"}) {
        INFO(text);
        CHECK_FALSE(parseFileTable(text));
    }
    const std::optional<FileTable> machine = fileTable();
    REQUIRE(machine);
    CHECK((machine->open > 0 && machine->open < machine->most));
    CHECK_FALSE(fileTable("/proc/sys/fs/no-such-file"));
}
