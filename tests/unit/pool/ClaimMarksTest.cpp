#include <algorithm>
#include <system_error>

#include "base/Ids.h"
#include "pool/ClaimMarks.h"
#include "tests/unit/base/Support.h"

using namespace hearth;
using namespace hearth::pool;
using namespace hearth::test;

TEST_CASE("a mark stands until it is cleared, also for the next server", "[unit][pool]") {
    const TempDir dir;
    const std::string a = newId("sb_");
    const std::string b = newId("sb_");
    {
        const ClaimMarks marks(dir.path());
        marks.set(a);
        marks.set(a);
        marks.set(b);
    }
    const ClaimMarks marks(dir.path());
    CHECK(marks.exists(a));
    auto all = marks.all();
    std::sort(all.begin(), all.end());
    CHECK(all == std::vector<std::string>{std::min(a, b), std::max(a, b)});
    marks.clear(a);
    marks.clear(a);
    CHECK_FALSE(marks.exists(a));
    CHECK(marks.all() == std::vector<std::string>{b});
}

TEST_CASE("files that are no marks are not taken for sandboxes", "[unit][pool]") {
    const TempDir dir;
    writeText(dir.file("lock"), "");
    CHECK(ClaimMarks(dir.path()).all().empty());
}

TEST_CASE("a mark that cannot be made is told", "[unit][pool]") {
    const TempDir dir;
    const ClaimMarks marks(dir.file("none"));
    CHECK_THROWS_AS(marks.set(newId("sb_")), std::system_error);
    const ClaimMarks linked(dir.path());
    const std::string id = newId("sb_");
    std::filesystem::create_symlink(dir.file("target"), dir.file(id));
    CHECK_THROWS_AS(linked.set(id), std::system_error);  // follows no link
    CHECK_FALSE(std::filesystem::exists(dir.file("target")));
}
