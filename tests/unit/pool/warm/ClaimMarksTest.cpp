#include <algorithm>
#include <system_error>

#include "base/Ids.h"
#include "pool/warm/ClaimMarks.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::pool;
using namespace hearth::test;

TEST_CASE("a mark stands until it is cleared, also for the next server", "[unit][pool]") {
    const TempDir dir;
    const std::string a = newId("sb_");
    const std::string b = newId("sb_");
    {
        ClaimMarks marks(dir.file("claimed"));
        marks.set(a);
        marks.set(a);
        marks.set(b);
    }
    ClaimMarks marks(dir.file("claimed"));
    CHECK(marks.exists(a));
    CHECK(marks.all() == std::vector<std::string>{std::min(a, b), std::max(a, b)});
    marks.clear(a);
    marks.clear(a);
    CHECK_FALSE(marks.exists(a));
    CHECK(marks.all() == std::vector<std::string>{b});
    CHECK(ClaimMarks(dir.file("claimed")).all() == std::vector<std::string>{b});
}

TEST_CASE("the end of a sandbox is marked once, with its reason, also for the next server",
          "[unit][pool]") {
    const TempDir dir;
    const std::string claimed = newId("sb_");
    const std::string warm = newId("sb_");
    ClaimMarks marks(dir.file("claimed"));
    marks.set(claimed);
    CHECK_FALSE(marks.ended(claimed));
    CHECK_FALSE(marks.ended(warm));
    marks.end(claimed, 0);
    marks.end(claimed, 7);
    marks.end(warm, 12);
    for (int life = 0; life < 2; ++life) {
        const ClaimMarks next(dir.file("claimed"));
        CHECK(next.exists(claimed));
        CHECK(next.ended(claimed) == 0);
        CHECK(next.ended(warm) == 12);
    }
    marks.clear(warm);
    marks.set(warm);
    CHECK_FALSE(ClaimMarks(dir.file("claimed")).ended(warm));
}

TEST_CASE("a second reader of the file sees a mark at once", "[unit][pool]") {
    const TempDir dir;
    ClaimMarks marks(dir.file("claimed"));
    const std::string id = newId("sb_");
    marks.set(id);  // a server that is killed now leaves this mark
    CHECK(ClaimMarks(dir.file("claimed")).exists(id));
}

TEST_CASE("there is room for any number of marks, and a freed place is used again",
          "[unit][pool]") {
    const TempDir dir;
    std::vector<std::string> ids;
    for (int i = 0; i < 3000; ++i) ids.push_back(newId("sb_"));
    std::sort(ids.begin(), ids.end());
    {
        ClaimMarks marks(dir.file("claimed"));
        for (const std::string& id : ids) marks.set(id);
        CHECK(marks.all() == ids);
    }
    const auto size = std::filesystem::file_size(dir.file("claimed"));
    ClaimMarks marks(dir.file("claimed"));
    CHECK(marks.all() == ids);
    for (const std::string& id : ids) marks.clear(id);
    for (const std::string& id : ids) marks.set(id);
    CHECK(std::filesystem::file_size(dir.file("claimed")) == size);
}

TEST_CASE("an entry of the file that is no id is no mark", "[unit][pool]") {
    const TempDir dir;
    writeText(dir.file("claimed"), std::string(200, 'x') + std::string(100, '\0'));
    ClaimMarks marks(dir.file("claimed"));
    CHECK(marks.all().empty());
    const std::string id = newId("sb_");
    marks.set(id);
    CHECK(ClaimMarks(dir.file("claimed")).all() == std::vector<std::string>{id});
}

TEST_CASE("a file that cannot be made is an error, and no link is followed", "[unit][pool]") {
    const TempDir dir;
    CHECK_THROWS_AS(ClaimMarks(dir.file("none") + "/claimed"), std::system_error);
    std::filesystem::create_symlink(dir.file("target"), dir.file("claimed"));
    CHECK_THROWS_AS(ClaimMarks(dir.file("claimed")), std::system_error);
    CHECK_FALSE(std::filesystem::exists(dir.file("target")));
}
