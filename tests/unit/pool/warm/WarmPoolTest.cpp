#include "pool/warm/WarmPool.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::pool;

namespace {

Member member(const std::string& id, const std::string& pool = "p") {
    Member out;
    out.id = id;
    out.pool = pool;
    return out;
}

void makeReady(WarmPool& pool, const std::string& id, const std::string& name = "p") {
    pool.add(member(id, name));
    pool.warming(id);
    pool.ready(id, nullptr, {});
}

}  // namespace

TEST_CASE("a sandbox goes through its phases forward only", "[unit][pool]") {
    WarmPool pool;
    pool.add(member("a"));
    CHECK(pool.find("a")->phase == Phase::Creating);
    CHECK_FALSE(pool.ready("a", nullptr, {}));  // it is not warming yet
    CHECK(pool.warming("a"));
    CHECK_FALSE(pool.warming("a"));
    CHECK(pool.ready("a", nullptr, {}));
    CHECK_FALSE(pool.ready("a", nullptr, {}));
    REQUIRE(pool.claim("p", "ws", "t"));
    CHECK_FALSE(pool.warming("a"));
    CHECK_FALSE(pool.ready("a", nullptr, {}));
    CHECK(pool.fail("a"));
    CHECK_FALSE(pool.fail("a"));
    CHECK(pool.drain("a"));
    CHECK_FALSE(pool.drain("a"));
    CHECK_FALSE(pool.fail("a"));
    CHECK(pool.find("a")->phase == Phase::Draining);
    pool.remove("a");
    pool.remove("a");
    CHECK_FALSE(pool.find("a"));
    for (const bool done : {pool.warming("a"), pool.drain("a"), pool.fail("a")}) CHECK_FALSE(done);
}

TEST_CASE("only a sandbox that nobody has claimed can be retired", "[unit][pool]") {
    WarmPool pool;
    pool.add(member("creating"));
    pool.add(member("warming"));
    pool.warming("warming");
    makeReady(pool, "claimed");
    REQUIRE(pool.claim("p", "ws", "t")->id == "claimed");
    makeReady(pool, "ready");
    for (const char* id : {"creating", "warming", "ready"}) {
        CHECK(pool.retire(id));
        CHECK_FALSE(pool.retire(id));
        CHECK(pool.find(id)->phase == Phase::Draining);
    }
    CHECK_FALSE(pool.retire("claimed"));
    CHECK(pool.find("claimed")->phase == Phase::Claimed);
    pool.fail("claimed");
    CHECK_FALSE(pool.retire("claimed"));
    CHECK_FALSE(pool.retire("unknown"));
    CHECK_FALSE(pool.claim("p", "ws", "t"));  // retired sandboxes are not given out
}

TEST_CASE("the oldest ready sandbox is claimed first and by one only", "[unit][pool]") {
    WarmPool pool;
    makeReady(pool, "c");
    makeReady(pool, "a");
    makeReady(pool, "b");
    makeReady(pool, "x", "q");
    const auto first = pool.claim("p", "ws_1", "t");
    REQUIRE(first);
    CHECK(first->id == "c");
    CHECK(first->workspace == "ws_1");
    CHECK(first->tenant == "t");
    CHECK(pool.claim("p", "ws_2", "t")->id == "a");
    CHECK(pool.claim("p", "ws_3", "t")->id == "b");
    CHECK_FALSE(pool.claim("p", "ws_4", "t"));
    CHECK_FALSE(pool.claim("unknown", "ws_4", "t"));
}

TEST_CASE("a sandbox given back before its claim was answered is claimed before the others",
          "[unit][pool]") {
    WarmPool pool;
    for (const char* id : {"a", "b"}) makeReady(pool, id);
    REQUIRE(pool.claim("p", "ws_1", "t")->id == "a");
    CHECK(pool.giveBack("a"));
    CHECK_FALSE(pool.giveBack("a"));
    CHECK_FALSE(pool.giveBack("unknown"));
    CHECK(pool.find("a")->workspace.empty());
    CHECK(pool.counts("p").ready == 2);
    CHECK(pool.claim("p", "ws_2", "t")->id == "a");
    pool.fail("a");
    CHECK_FALSE(pool.giveBack("a"));
    CHECK(pool.claim("p", "ws_3", "t")->id == "b");
}

TEST_CASE("a drained, failed or removed sandbox is never claimed", "[unit][pool]") {
    WarmPool pool;
    for (const char* id : {"a", "b", "c"}) makeReady(pool, id);
    pool.add(member("d"));
    pool.drain("a");
    pool.fail("b");
    pool.remove("c");
    CHECK_FALSE(pool.claim("p", "ws", "t"));
}

TEST_CASE("counts follow every step", "[unit][pool]") {
    WarmPool pool;
    CHECK(pool.counts("p").total() == 0);
    pool.add(member("a"));
    pool.add(member("a"));  // known already
    pool.add(member("b"));
    pool.warming("b");
    makeReady(pool, "c");
    makeReady(pool, "d");
    makeReady(pool, "e");
    pool.fail("e");
    pool.claim("p", "ws", "t");
    makeReady(pool, "x", "q");
    const PoolCounts counts = pool.counts("p");
    CHECK(counts.creating == 1);
    CHECK(counts.warming == 1);
    CHECK(counts.ready == 1);
    CHECK(counts.claimed == 1);
    CHECK(counts.failed == 1);
    CHECK(counts.draining == 0);
    CHECK(counts.total() == 5);
    CHECK(pool.members("p").size() == 5);
    const WarmStock stock = pool.stock("p", member("a").template_hash);
    CHECK(stock.fresh == 3);
    CHECK(stock.fresh_ready == 1);
    CHECK(stock.ready == 1);
    CHECK(stock.oldest);
    const WarmStock other = pool.stock("p", "of another template");
    CHECK(other.fresh == 0);
    CHECK(other.ready == 1);
    CHECK(pool.stock("unknown", "").ready == 0);
    CHECK(pool.all().size() == 6);
    for (const Member& each : pool.all()) {
        pool.drain(each.id);
        pool.remove(each.id);
    }
    CHECK(pool.counts("p").total() == 0);
    CHECK(pool.counts("q").total() == 0);
}

TEST_CASE("the claims of each tenant are counted through every step", "[unit][pool]") {
    WarmPool pool;
    using Counts = std::vector<std::size_t>;
    const auto claimed = [&] { return pool.claimedBy("p", {"t", "u", "nobody"}); };
    CHECK(claimed() == Counts{0, 0, 0});
    for (const char* id : {"a", "b", "c", "d"}) makeReady(pool, id);
    makeReady(pool, "x", "q");
    pool.claim("p", "ws_1", "t");
    pool.claim("p", "ws_2", "t");
    pool.claim("p", "ws_3", "u");
    pool.claim("q", "ws_4", "t");  // another pool's
    CHECK(claimed() == Counts{2, 1, 0});
    pool.giveBack("a");
    CHECK(claimed() == Counts{1, 1, 0});
    pool.claim("p", "ws_5", "u");
    CHECK(claimed() == Counts{1, 2, 0});
    pool.drain("a");
    pool.remove("a");
    pool.fail("b");
    CHECK(claimed() == Counts{0, 1, 0});

    // A found sandbox counts for no tenant until its agent has named the owner.
    Member found = member("e");
    found.phase = Phase::Claimed;
    found.unasked = true;
    pool.adopt(found);
    found.unasked = false;
    found.tenant = "t";
    pool.adopt(found);
    CHECK(claimed() == Counts{1, 1, 0});
    for (const Member& each : pool.all()) pool.remove(each.id);
    CHECK(claimed() == Counts{0, 0, 0});
}

TEST_CASE("an adopted sandbox keeps the phase in which it was found", "[unit][pool]") {
    WarmPool pool;
    Member claimed = member("a");
    claimed.phase = Phase::Claimed;
    Member ready = member("b");
    ready.phase = Phase::Ready;
    pool.adopt(claimed);
    pool.adopt(ready);
    CHECK(pool.counts("p").claimed == 1);
    CHECK(pool.claim("p", "ws", "t")->id == "b");
}

TEST_CASE("phases have names", "[unit][pool]") {
    CHECK(kPhases.find("Creating") == Phase::Creating);
    CHECK(kPhases.of(Phase::Failed) == std::string("Failed"));
}

TEST_CASE("members are added within the disk space that may be promised", "[unit][pool]") {
    WarmPool pool;
    const auto sized = [](const std::string& id, std::uint64_t bytes) {
        Member out = member(id);
        out.disk_bytes = bytes;
        return out;
    };
    CHECK(pool.addWithin(sized("a", 60), 100));
    CHECK_FALSE(pool.addWithin(sized("b", 41), 100));
    CHECK(pool.addWithin(sized("b", 40), 100));
    CHECK(pool.addWithin(sized("none", 0), 100));
    CHECK_FALSE(pool.addWithin(sized("c", UINT64_MAX), UINT64_MAX - 1));
    CHECK(pool.promisedDisk() == 100);
    pool.drain("a");
    CHECK(pool.promisedDisk() == 100);  // its image is still there
    pool.remove("a");
    pool.adopt(sized("d", 500));  // it exists, so it is added beyond the limit
    CHECK(pool.promisedDisk() == 540);
    CHECK_FALSE(pool.addWithin(sized("e", 1), 100));
}
