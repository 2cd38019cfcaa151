#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "controller/reconcile/PoolReconciler.h"
#include "controller/reconcile/sizing/Sizing.h"
#include "controller/spec/TemplateHash.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

/// A pool of the weather, its workspaces and claims, and its last observed state.
struct Weathered {
    std::string name;
    PoolSpec spec;
    std::map<std::string, std::string> held{};  ///< workspaces, with their sandboxes
    std::vector<std::shared_ptr<Stepped<WorkspaceView>>> waiting{};  ///< claims in line
    std::size_t most_at_once = 0;                                    ///< parallel starts
    std::size_t fresh = 0;
    std::size_t unclaimed = 0;
    std::size_t total = 0;
};

/// Two pools that random events hit, with the checks that must hold meanwhile. One pool refuses a
/// claim that finds no sandbox, in the other one the claim waits.
class Weather {
public:
    explicit Weather(unsigned seed) : random_(seed) {
        PoolSpec spec = smallSpec(3);
        spec.warm_max = 6;
        spec.max_members = 20;
        spec.per_tenant = 1'000;
        spec.idle_timeout = spec.max_lifetime = 24h;
        spec.on_empty = OnEmpty::Fail;
        pools_.push_back({"p", spec});
        spec.on_empty = seed % 2 == 0 ? OnEmpty::Queue : OnEmpty::Create;
        spec.warm_min = 1;
        spec.warm_max = 2;
        pools_.push_back({"q", spec});
        for (Weathered& pool : pools_) declare(pool);
    }
    ~Weather() { ground.runtime.onNews({}); }
    Weather(const Weather&) = delete;
    Weather& operator=(const Weather&) = delete;

    /// From now on, a new sandbox listens only after news().
    void delayStarts() {
        ground.runtime.acceptOnly();
        ground.runtime.onNews([this](const pool::SandboxId& id) {
            house.work.add({WorkKind::Sandbox, id});
        });
    }
    void news() { ground.runtime.letListen(); }

    void claim() { claim(some()); }
    void claim(Weathered& pool) {
        WorkspaceRequest request = House::request();
        request.pool = pool.name;
        const auto claim =
            std::make_shared<Stepped<WorkspaceView>>(house.claiming(house.who, request));
        if (!served(pool, *claim)) pool.waiting.push_back(claim);
    }
    /// Serves the claims in line whose turn has come, and sometimes lets one hang up.
    void line() {
        for (Weathered& pool : pools_) {
            std::erase_if(pool.waiting, [&](const auto& claim) { return served(pool, *claim); });
            if (!pool.waiting.empty() && pick(4) == 0) pool.waiting.pop_back();
        }
    }
    void close() { close(some()); }
    void close(Weathered& pool) {
        if (pool.held.empty()) return;
        const auto one = std::next(pool.held.begin(), pick(static_cast<int>(pool.held.size())));
        house.workspaces.close(house.who, one->first);
        pool.held.erase(one);
    }
    /// Kills a sandbox in any phase. `heard`: the server notices before anything else happens.
    void death(Weathered& pool, bool heard) {
        const std::vector<pool::Member> all = house.warm.members(pool.name);
        if (all.empty()) return;
        const pool::Member& one = all[static_cast<std::size_t>(pick(static_cast<int>(all.size())))];
        if (one.phase != pool::Phase::Ready && one.phase != pool::Phase::Claimed) return;
        if (one.phase == pool::Phase::Ready) ++consumed;
        std::erase_if(pool.held, [&](const auto& each) { return each.second == one.id; });
        ground.runtime.kill(one.id);
        if (!heard) return;
        REQUIRE(house.settleUntil([&] {
            const std::optional<pool::Member> now = house.warm.find(one.id);
            return !now || (now->phase != pool::Phase::Ready && now->phase != pool::Phase::Claimed);
        }));
    }
    void death() { death(some(), pick(2) == 0); }
    /// Makes a sandbox indestructible for a while, or destructible again.
    void stubborn() {
        if (!resisting_.empty()) {
            ground.runtime.resist(*resisting_.begin(), false);
            resisting_.erase(resisting_.begin());
            return;
        }
        const std::vector<pool::Member> all = house.warm.all();
        if (all.empty()) return;
        const pool::Member& one = all[static_cast<std::size_t>(pick(static_cast<int>(all.size())))];
        ground.runtime.resist(one.id);
        resisting_.insert(one.id);
    }
    void failures() { ground.runtime.failCreates(static_cast<unsigned>(pick(3))); }
    void time() { ground.manual.advance(std::chrono::milliseconds(1 + pick(20'000))); }
    void edit() {
        Weathered& pool = some();
        PoolSpec& spec = pool.spec;
        spec.warm_max = static_cast<std::uint32_t>(1 + pick(8));
        spec.warm_min = static_cast<std::uint32_t>(pick(static_cast<int>(spec.warm_max) + 1));
        spec.parallel_creates = static_cast<std::uint32_t>(1 + pick(4));
        spec.max_members = static_cast<std::uint32_t>(4 + pick(16));
        spec.sizing = pick(3) == 0 ? SizingMode::Predictive : SizingMode::Static;
        spec.max_age = pick(4) == 0 ? 2min : 1440min;
        spec.schedules.clear();
        const WarmChange change{.min = static_cast<std::uint32_t>(pick(4)), .max = 4};
        if (pick(3) == 0)
            spec.schedules.push_back({"window", Cron("*/2 * * * *"), {}, 1min, change});
        if (pick(3) == 0) spec.schedules.push_back({"since", Cron("0 0 1 1 *"), {}, 0min, change});
        if (pick(3) == 0) spec.image = pick(2) == 0 ? "python" : "node";
        declare(pool);
    }
    /// Ends all warm sandboxes and makes none. The next call undrains.
    void drain() {
        if (house.pool_reconciler.drained()) return house.pools.undrainAll(house.who);
        house.pool_reconciler.drain();
        for (const pool::Member& member : house.warm.all()) {
            if (pool::isWarm(member.phase)) house.terminator.retire(member, EndReason::Drain);
        }
        drained_at_ = ground.runtime.created();
    }
    /// Deletes a pool, and declares it again after it has gone.
    void remove() {
        Weathered& pool = some();
        if (!pool.held.empty() || !resisting_.empty()) return;
        pool.waiting.clear();
        house.pools.remove(house.who, pool.name);
        REQUIRE(house.settleUntil([&] { return !house.specs.find(pool.name); }));
        declare(pool);
    }
    void work() {
        if (pick(2) == 0) {
            house.loop.settle();
        } else {
            house.pool_reconciler.reconcile(some().name);
        }
    }

    /// Checks the facts that hold at every moment.
    void look() {
        for (Weathered& pool : pools_) look(pool);
        if (house.pool_reconciler.drained()) CHECK(ground.runtime.created() == drained_at_);
    }

    /// Ends all faults. The pools become what their manifests say, and stay so.
    void calm() {
        ground.runtime.failCreates(0);
        if (house.pool_reconciler.drained()) house.pools.undrainAll(house.who);
        while (!resisting_.empty()) stubborn();
        for (Weathered& pool : pools_) {
            pool.waiting.clear();
            pool.spec.sizing = SizingMode::Static;
            pool.spec.max_age = 24h;
            pool.spec.max_members = 100;
            std::erase_if(pool.spec.schedules,
                          [](const Schedule& s) { return s.name == "window"; });
            declare(pool);
        }
        const auto all_right = [&] {
            std::size_t all = 0;
            for (const Weathered& pool : pools_) {
                if (!right(pool)) return false;
                all += house.warm.counts(pool.name).total();
            }
            return ground.runtime.list().size() == all;
        };
        CHECK(eventually([&] {
            if (all_right()) return true;
            ground.manual.advance(1s);
            news();
            house.loop.settle();
            return false;
        }));
        const std::size_t created = ground.runtime.created();
        for (int i = 0; i < 10; ++i) {
            ground.manual.advance(31s);
            house.loop.settle();
        }
        CHECK(all_right());
        CHECK(ground.runtime.created() == created);
        look();
    }

    int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
    Weathered& first() { return pools_.front(); }

    Ground ground;
    House house{ground};
    std::size_t consumed = 0;  ///< warm sandboxes that were claimed or died

private:
    Weathered& some() { return pools_[static_cast<std::size_t>(pick(3) / 2)]; }

    void declare(Weathered& pool) {
        house.declare(pool.name, pool.spec);
        pool.most_at_once = std::max<std::size_t>(pool.most_at_once, pool.spec.parallel_creates);
    }

    /// Returns true if the claim has its answer, false if it waits.
    bool served(Weathered& pool, Stepped<WorkspaceView>& claim) {
        if (!claim.run()) return false;
        try {
            const WorkspaceView view = claim.result();
            pool.held[view.id] = view.sandbox_id;
            ++consumed;
        } catch (const Error&) {  // empty, degraded or drained: all of these are answers
        }
        return true;
    }

    void look(Weathered& pool) {
        INFO("pool " << pool.name);
        const SizingInput now{pool.spec, ground.manual.wall()};
        const pool::PoolCounts counts = house.warm.counts(pool.name);
        const pool::WarmStock stock = house.warm.stock(pool.name, templateHash(pool.spec, ""));
        const std::size_t starting = counts.creating + counts.warming;
        const std::size_t unclaimed = starting + counts.ready;
        const std::size_t most =
            pool.spec.on_empty == OnEmpty::Fail ? rangeNow(now).max : mostUnclaimed(now);
        CHECK(starting <= pool.most_at_once);
        // An edit may leave more sandboxes than it allows, but none are added then.
        if (stock.fresh > pool.fresh) CHECK(stock.fresh <= most);
        if (unclaimed > pool.unclaimed) CHECK(unclaimed <= most + pool.most_at_once);  // the surge
        if (counts.total() > pool.total) CHECK(counts.total() <= pool.spec.max_members);
        for (const auto& [workspace, sandbox] : pool.held) {
            const std::optional<pool::Member> member = house.warm.find(sandbox);
            REQUIRE(member);
            CHECK(member->phase == pool::Phase::Claimed);
            CHECK(house.workspaces.get(house.who, workspace).phase == WorkspacePhase::Active);
        }
        if (starting == 0) pool.most_at_once = pool.spec.parallel_creates;
        pool.fresh = stock.fresh;
        pool.unclaimed = unclaimed;
        pool.total = counts.total();
    }

    bool right(const Weathered& pool) const {
        const pool::PoolCounts counts = house.warm.counts(pool.name);
        const std::size_t wanted = desiredWarm({pool.spec, ground.manual.wall()});
        return counts.ready == wanted && counts.claimed == pool.held.size() &&
               counts.total() == counts.ready + counts.claimed &&
               house.warm.stock(pool.name, templateHash(pool.spec, "")).fresh_ready == wanted;
    }

    std::mt19937 random_;
    std::vector<Weathered> pools_;
    std::set<pool::SandboxId> resisting_;
    std::size_t drained_at_ = 0;
};

using Step = void (Weather::*)();

}  // namespace

TEST_CASE("pools converge to their manifests, whatever happens to them", "[unit][controller]") {
    const std::vector<Step> steps = {
        &Weather::claim,    &Weather::claim,  &Weather::claim, &Weather::line,  &Weather::line,
        &Weather::close,    &Weather::close,  &Weather::death, &Weather::death, &Weather::stubborn,
        &Weather::failures, &Weather::edit,   &Weather::edit,  &Weather::time,  &Weather::time,
        &Weather::drain,    &Weather::remove, &Weather::news,  &Weather::work,  &Weather::work,
        &Weather::work,     &Weather::work,   &Weather::work,  &Weather::work,
    };
    for (unsigned seed = 1; seed <= 16; ++seed) {
        INFO("seed " << seed);
        Weather weather(seed);
        if (seed % 4 < 2) weather.delayStarts();
        for (int step = 0; step < 200; ++step) {
            const auto which =
                static_cast<std::size_t>(weather.pick(static_cast<int>(steps.size())));
            INFO("step " << step << " is of kind " << which);
            (weather.*steps[which])();
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
        REQUIRE(weather.house.filled("q", 1));
        for (int step = 0; step < 150; ++step) {
            switch (weather.pick(7)) {
                case 0:
                    weather.claim(weather.first());
                    break;
                case 1:
                    weather.close(weather.first());
                    break;
                case 2:
                    weather.death(weather.first(), true);
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
        CHECK(weather.ground.runtime.created() == 3 + 1 + weather.consumed);
    }
}
