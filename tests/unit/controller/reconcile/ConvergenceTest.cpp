#include <map>
#include <random>

#include "controller/reconcile/PoolReconciler.h"
#include "controller/spec/TemplateHash.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

/// A pool to which things happen at random, and what must hold meanwhile.
class Weather {
public:
    explicit Weather(unsigned seed) : random_(seed) {
        spec_ = smallSpec(3);
        spec_.warm_max = 6;
        spec_.on_empty = OnEmpty::Fail;
        spec_.per_tenant = 1'000;
        declare();
    }

    void claim() {
        try {
            const WorkspaceView view = house.workspaces.create(house.who, House::request());
            held_[view.id] = view.sandbox_id;
            ++consumed;
        } catch (const Error&) {  // empty, or degraded: both are answers
        }
    }
    void close() {
        if (held_.empty()) return;
        const auto one = std::next(held_.begin(), pick(static_cast<int>(held_.size())));
        house.workspaces.close(house.who, one->first);
        held_.erase(one);
    }
    /// A sandbox dies, whatever it does.
    void death() {
        const std::vector<pool::Member> all = house.warm.members("p");
        if (all.empty()) return;
        const pool::Member& one = all[static_cast<std::size_t>(pick(static_cast<int>(all.size())))];
        if (one.phase != pool::Phase::Ready && one.phase != pool::Phase::Claimed) return;
        if (one.phase == pool::Phase::Ready) ++consumed;
        std::erase_if(held_, [&](const auto& each) { return each.second == one.id; });
        ground.runtime.kill(one.id);
        REQUIRE(house.settleUntil([&] {
            const std::optional<pool::Member> now = house.warm.find(one.id);
            return !now || (now->phase != pool::Phase::Ready && now->phase != pool::Phase::Claimed);
        }));
    }
    void failures() { ground.runtime.failCreates(static_cast<unsigned>(pick(3))); }
    void time() { ground.manual.advance(std::chrono::milliseconds(1 + pick(20'000))); }
    void edit() {
        spec_.warm_max = static_cast<std::uint32_t>(1 + pick(8));
        spec_.warm_min = static_cast<std::uint32_t>(pick(static_cast<int>(spec_.warm_max) + 1));
        spec_.parallel_creates = static_cast<std::uint32_t>(1 + pick(4));
        if (pick(3) == 0) spec_.image = pick(2) == 0 ? "python" : "node";
        declare();
    }
    void work() {
        if (pick(2) == 0) {
            house.loop.settle();
        } else {
            house.pool_reconciler.reconcile("p");
        }
    }

    /// What holds at every moment.
    void look() {
        const pool::PoolCounts counts = house.warm.counts("p");
        const pool::WarmStock stock = house.warm.stock("p", templateHash(spec_, ""));
        if (stock.fresh > fresh_) CHECK(stock.fresh <= spec_.warm_max);
        CHECK(counts.creating + counts.warming <= most_at_once_);
        for (const auto& [workspace, sandbox] : held_) {
            const std::optional<pool::Member> member = house.warm.find(sandbox);
            REQUIRE(member);
            CHECK(member->phase == pool::Phase::Claimed);
            CHECK(house.workspaces.get(house.who, workspace).phase == WorkspacePhase::Active);
        }
        if (counts.creating + counts.warming == 0) most_at_once_ = spec_.parallel_creates;
        fresh_ = stock.fresh;
    }

    /// No more faults: the pool becomes what its manifest says, and stays so.
    void calm() {
        ground.runtime.failCreates(0);
        const std::string wanted = templateHash(spec_, "");
        const auto right = [&] {
            const pool::PoolCounts counts = house.warm.counts("p");
            return counts.ready == spec_.warm_min && counts.claimed == held_.size() &&
                   counts.total() == counts.ready + counts.claimed &&
                   house.warm.stock("p", wanted).fresh_ready == spec_.warm_min &&
                   ground.runtime.list().size() == counts.total();
        };
        CHECK(eventually([&] {
            if (right()) return true;
            ground.manual.advance(1s);
            house.loop.settle();
            return false;
        }));
        const std::size_t created = ground.runtime.created();
        for (int i = 0; i < 10; ++i) {
            ground.manual.advance(31s);
            house.loop.settle();
        }
        CHECK(right());
        CHECK(ground.runtime.created() == created);
        look();
    }

    int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }

    Ground ground;
    House house{ground};
    std::size_t consumed = 0;  ///< warm sandboxes that were claimed or died

private:
    void declare() {
        house.declare("p", spec_);
        most_at_once_ = std::max<std::size_t>(most_at_once_, spec_.parallel_creates);
    }

    std::mt19937 random_;
    PoolSpec spec_;
    std::map<std::string, std::string> held_;  ///< workspaces, with their sandboxes
    std::size_t most_at_once_ = 0;
    std::size_t fresh_ = 0;
};

}  // namespace

TEST_CASE("whatever happens to a pool, it becomes what its manifest says", "[unit][controller]") {
    for (unsigned seed = 1; seed <= 12; ++seed) {
        INFO("seed " << seed);
        Weather weather(seed);
        for (int step = 0; step < 120; ++step) {
            switch (weather.pick(10)) {
                case 0:
                case 1:
                    weather.claim();
                    break;
                case 2:
                    weather.close();
                    break;
                case 3:
                    weather.death();
                    break;
                case 4:
                    weather.failures();
                    break;
                case 5:
                    weather.edit();
                    break;
                case 6:
                    weather.time();
                    break;
                default:
                    weather.work();
                    break;
            }
            weather.look();
        }
        weather.calm();
    }
}

TEST_CASE("a pool makes one sandbox for each that is lost to it, and no more",
          "[unit][controller]") {
    for (unsigned seed = 100; seed < 106; ++seed) {
        INFO("seed " << seed);
        Weather weather(seed);
        REQUIRE(weather.house.filled("p", 3));
        for (int step = 0; step < 150; ++step) {
            switch (weather.pick(7)) {
                case 0:
                    weather.claim();
                    break;
                case 1:
                    weather.close();
                    break;
                case 2:
                    weather.death();
                    break;
                case 3:
                    weather.time();
                    break;
                default:
                    weather.work();
                    break;
            }
            weather.look();
        }
        weather.calm();
        CHECK(weather.ground.runtime.created() == 3 + weather.consumed);
    }
}
