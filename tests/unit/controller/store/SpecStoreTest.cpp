#include "controller/store/SpecStore.h"
#include "tests/support/Support.h"
#include "tests/unit/controller/journal/Desk.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace hearth::test;
using Mode = SpecStore::Mode;

namespace {

struct Specs : JournalDesk {
    SpecStore store{journal, clock};
    bool created = false;

    PoolPtr put(const std::string& name, std::uint32_t min, Mode mode,
                std::optional<std::int64_t> if_match = {}) {
        PoolSpec spec;
        spec.image = "python";
        spec.warm_min = min;
        return store.put(parsePool(poolDocument(name, spec)), mode, if_match, created);
    }
};

}  // namespace

TEST_CASE("the error for an unknown pool lists the existing pools", "[unit][controller]") {
    Specs specs;
    CHECK(specs.store.noPool("x").hint().find("hearth apply -f") != std::string::npos);
    specs.put("b", 1, Mode::Create);
    CHECK(specs.store.noPool("x").hint() == "the only pool is b");
    specs.put("a", 1, Mode::Create);
    CHECK(specs.store.noPool("x").hint() == "the pools are b, a");
    CHECK(std::string(specs.store.noPool("x").what()) == "no pool x");
    specs.store.markDeleting("a");
    for (int i = 0; i < 21; ++i) specs.put("p" + std::to_string(i), 1, Mode::Create);
    const std::string many = specs.store.noPool("x").hint();
    CHECK(many.find("a,") == std::string::npos);
    CHECK(many.ends_with("p18 and 2 more"));
}

TEST_CASE("a pool is created once and found again, also after a restart", "[unit][controller]") {
    Specs specs;
    CHECK(specs.put("b", 1, Mode::Create)->generation == 1);
    CHECK(specs.created);
    specs.put("a", 1, Mode::Create);
    CHECK(codeOf([&] { specs.put("a", 2, Mode::Create); }) == ErrorCode::Conflict);
    const SpecStore again(specs.journal, specs.clock);
    REQUIRE(again.all().size() == 2);
    CHECK(again.all()[0]->name == "b");  // in the order of creation, even in the same millisecond
    CHECK(again.find("a")->spec == specs.store.find("a")->spec);
    CHECK_FALSE(again.find("c"));
}

TEST_CASE("a pool whose stored manifest is damaged is refused, and the others serve",
          "[unit][controller]") {
    for (const char* damage : {"{\"a\":", "{}", "[]", ""}) {
        Specs specs;
        specs.put("good", 1, Mode::Create);
        specs.put("bad", 1, Mode::Create);
        specs.journal.writeNow([&](Database& database) {
            Statement(database, "UPDATE pools SET document = ? WHERE name = 'bad'")
                .bind(std::string(damage))
                .run();
        });
        SpecStore again(specs.journal, specs.clock);
        REQUIRE(again.find("good"));
        CHECK(again.find("good")->refused.empty());
        REQUIRE(again.find("bad"));
        CHECK_FALSE(again.find("bad")->refused.empty());
    }
}

TEST_CASE("the generation rises only when the spec changes", "[unit][controller]") {
    Specs specs;
    specs.put("p", 1, Mode::Create);
    const PoolPtr same = specs.put("p", 1, Mode::Replace);
    CHECK(same->generation == 1);
    CHECK(same->resource_version == 1);
    const PoolPtr changed = specs.put("p", 2, Mode::CreateOrReplace);
    CHECK_FALSE(specs.created);
    CHECK(changed->generation == 2);
    CHECK(changed->resource_version == 2);
    CHECK(SpecStore(specs.journal, specs.clock).find("p")->generation == 2);
}

TEST_CASE("a change on condition needs the version that was read", "[unit][controller]") {
    Specs specs;
    CHECK(codeOf([&] { specs.put("p", 1, Mode::Replace); }) == ErrorCode::NotFound);
    CHECK(codeOf([&] { specs.put("p", 1, Mode::CreateOrReplace, 1); }) == ErrorCode::NotFound);
    specs.put("p", 1, Mode::Create);
    specs.put("p", 2, Mode::Replace, 1);
    CHECK(codeOf([&] { specs.put("p", 3, Mode::Replace, 1); }) == ErrorCode::PreconditionFailed);
    CHECK(specs.store.find("p")->spec.warm_min == 2);
}

TEST_CASE("a pool that is being deleted cannot be changed and does not come back",
          "[unit][controller]") {
    Specs specs;
    CHECK(codeOf([&] { specs.store.markDeleting("p"); }) == ErrorCode::NotFound);
    specs.put("p", 1, Mode::Create);
    specs.store.markDeleting("p");
    CHECK(specs.store.find("p")->deleting);
    CHECK(codeOf([&] { specs.put("p", 2, Mode::CreateOrReplace); }) == ErrorCode::Conflict);
    CHECK_FALSE(SpecStore(specs.journal, specs.clock).find("p"));
    specs.store.erase("p");
    CHECK_FALSE(specs.store.find("p"));
    specs.put("p", 1, Mode::Create);
    CHECK(specs.created);
}

TEST_CASE("a pool whose stored manifest is refused is kept with the reason, and can be mended",
          "[unit][controller]") {
    Specs specs;
    specs.put("worse", 1, Mode::Create);
    specs.journal.writeNow([](Database& database) {
        Statement(database,
                  "UPDATE pools SET document = replace(document, '\"pids\":', '\"pigs\":')")
            .run();
    });
    SpecStore again(specs.journal, specs.clock);
    const PoolPtr worse = again.find("worse");
    REQUIRE(worse);
    CHECK(worse->refused.find("pigs") != std::string::npos);
    CHECK(worse->spec.image == "python");
    Pool mended = *worse;
    mended.refused.clear();
    bool created = true;
    CHECK(again.put(mended, Mode::Replace, {}, created)->generation == 2);
    CHECK(again.find("worse")->refused.empty());
}
