#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "tests/unit/controller/gpus/GpuPool.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;

TEST_CASE("a GPU is not given out while a sandbox has one of its instances, even a removed one",
          "[unit][gpu]") {
    Ground ground;
    pool::GpuDevice whole = FakeGpuHost::device(1);
    const pool::GpuDevice instance{FakeGpuHost::uuid(2, "MIG-"), whole.product, 10ULL << 30U,
                                   whole.uuid, "1g.10gb"};
    const pool::GpuDevice another{FakeGpuHost::uuid(3, "MIG-"), whole.product, 10ULL << 30U,
                                  whole.uuid, "1g.10gb"};
    GpuSpec mig;
    mig.count = 1;
    mig.sharing = GpuSharing::Mig;
    GpuSpec own;
    own.count = 1;
    ground.gpus.have({whole});
    {
        House house(ground);
        pool::SandboxSpec spec;
        spec.image = "python";
        ground.runtime.create("sb_a", spec);
        scrubbed(house);  // whole, and clean
        whole.split = true;
        ground.gpus.have({whole, instance});
        scrubbed(house);
        REQUIRE(house.gpus.take("sb_a", "m", mig).uuids == std::vector{instance.uuid});
        house.gpus.store("sb_a");
    }
    const unsigned before = ground.gpus.scrubs(whole.uuid);
    House house(ground);
    whole.split = false;
    ground.gpus.have({whole});
    house.gpu_reconciler.look();
    house.loop.settle();
    CHECK(house.gpu_service.get(house.who, instance.uuid).state == GpuState::Gone);
    CHECK(house.gpus.take("sb_b", "p", own).uuids.empty());
    CHECK(ground.gpus.scrubs(whole.uuid) == before);
    whole.split = true;
    ground.gpus.have({whole, another});
    house.gpu_reconciler.look();
    house.loop.settle();
    CHECK(house.gpus.take("sb_c", "m", mig).uuids.empty());

    house.gpus.drop("sb_a");
    scrubbed(house);
    CHECK(house.gpus.take("sb_c", "m", mig).uuids == std::vector{another.uuid});
    house.gpus.drop("sb_c");
    whole.split = false;
    ground.gpus.have({whole});
    scrubbed(house);
    CHECK(house.gpus.take("sb_b", "p", own).uuids == std::vector{whole.uuid});
    CHECK(ground.gpus.scrubs(whole.uuid) == before + 1);
}

TEST_CASE("a shared device is shared only among pools that share", "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(1));
    GpuSpec shared;
    shared.count = 1;
    shared.sharing = GpuSharing::Shared;
    GpuSpec own;
    own.count = 1;
    {
        House house(ground);
        scrubbed(house);
        CHECK(house.gpus.take("sb_a", "s", shared).uuids.size() == 1);
        house.gpus.store("sb_a");
        CHECK(house.gpus.take("sb_b", "p", own).uuids.empty());
        house.gpus.drop("sb_a");
        scrubbed(house);
        CHECK(house.gpus.take("sb_b", "p", own).uuids.size() == 1);
        house.gpus.store("sb_b");
        CHECK(house.gpus.take("sb_c", "s", shared).uuids.empty());
    }
    House house(ground);
    house.gpus.look();
    CHECK(house.gpus.take("sb_d", "s", shared).uuids.empty());
}

TEST_CASE("a lease outlives the server, also where its data file is lost", "[unit][gpu]") {
    Ground ground;
    const std::string workspace = workspaceOfLifeBefore(ground);
    const bool lost = GENERATE(false, true);
    if (lost) ground.loseData();
    House house(ground);
    if (lost) house.declare("p", gpuSpec(2));
    house.recover();
    const WorkspaceView view = house.workspaces.get(house.who, workspace);
    REQUIRE(view.gpus.size() == 1);
    const GpuView held = house.gpu_service.get(house.who, view.gpus.front());
    CHECK(held.state == GpuState::Leased);
    CHECK(held.holders.at(0).workspace == workspace);
    const unsigned before = ground.gpus.scrubs(view.gpus.front());
    house.loop.settle();
    CHECK(ground.gpus.scrubs(view.gpus.front()) == before);
}

TEST_CASE("a device in use that has gone keeps its lease", "[unit][gpu]") {
    GpuPool filled(2);
    Ground& ground = filled.ground;
    House& house = filled.house;
    const WorkspaceView view = house.open(house.who, House::request());
    const bool first = view.gpus.front() == FakeGpuHost::uuid(1);
    ground.gpus.have({FakeGpuHost::device(first ? 2 : 1)});
    house.gpu_reconciler.look();
    const GpuView gone = house.gpu_service.get(house.who, view.gpus.front());
    CHECK(gone.state == GpuState::Gone);
    CHECK(gone.holders.at(0).workspace == view.id);
    ground.gpus.have(FakeGpuHost::several(2));
    house.gpu_reconciler.look();
    CHECK(gpuOf(house, first ? 1 : 2).state == GpuState::Leased);
}

namespace {

/// A machine with four devices and two pools. Random events hit it and its server.
class GpuWeather {
public:
    explicit GpuWeather(unsigned seed) : random_(seed) {
        ground_.gpus.have(FakeGpuHost::several(4));
        start();
        house_->declare("p", gpuSpec(2));
        house_->declare("q", gpuSpec(1, 2));
    }

    void step() {
        const auto what = random_() % 100;
        if (what < 30) {
            claim(random_() % 2 == 0 ? "p" : "q");
        } else if (what < 55 && !held_.empty()) {
            close();
        } else if (what < 58) {
            death();
        } else if (what < 59) {
            ground_.runtime.failCreates(1);
        } else if (what < 61) {
            start();
        } else if (what < 70) {
            ground_.manual.advance(std::chrono::milliseconds(random_() % 3'000));
            house_->gpu_reconciler.look();
        } else {
            house_->loop.settle();
        }
        look();
    }
    unsigned claims() const { return claims_; }

private:
    /// Ends the server like kill -9, and starts the next one.
    void start() {
        house_.reset();
        house_ = std::make_unique<House>(ground_);
        house_->recover();
    }
    void claim(const char* pool) {
        WorkspaceRequest request = House::request();
        request.pool = pool;
        try {
            const WorkspaceView view = house_->open(house_->who, request);
            CHECK(view.gpus.size() == (view.pool == "p" ? 1 : 2));
            held_.push_back(view.id);
            ++claims_;
        } catch (const Error&) {  // an empty pool: a valid answer
        }
    }
    void close() {
        const std::size_t at = random_() % held_.size();
        try {
            house_->workspaces.close(house_->who, held_[at]);
        } catch (const Error&) {  // the workspace has died
        }
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    void death() {
        const std::vector<pool::Member> all = house_->warm.all();
        if (!all.empty()) ground_.runtime.kill(all[random_() % all.size()].id);
    }
    /// Checks the sandboxes that exist, known to the server or not: each device is in one at most,
    /// with a scrub between two of them.
    void look() {
        std::map<std::string, std::string> now;
        for (const pool::SandboxInfo& info : ground_.runtime.list()) {
            for (const std::string& uuid : gpusOf(info.labels)) {
                CHECK(now.emplace(uuid, info.id).second);
            }
        }
        for (const auto& [uuid, sandbox] : now) {
            const auto last = last_.find(uuid);
            const unsigned scrubs = ground_.gpus.scrubs(uuid);
            if (last != last_.end() && last->second.first != sandbox) {
                CHECK(scrubs > last->second.second);
            }
            last_[uuid] = {sandbox, scrubs};
        }
    }

    std::mt19937 random_;
    Ground ground_;
    std::unique_ptr<House> house_;
    std::vector<std::string> held_;
    std::map<std::string, std::pair<std::string, unsigned>> last_;
    unsigned claims_ = 0;
};

}  // namespace

TEST_CASE("a device is never in two sandboxes, and never given again without a scrub",
          "[unit][gpu]") {
    unsigned claims = 0;
    for (unsigned seed = 1; seed <= 5; ++seed) {
        GpuWeather weather(seed);
        for (int i = 0; i < 400; ++i) weather.step();
        claims += weather.claims();
    }
    CHECK(claims > 200);
}
