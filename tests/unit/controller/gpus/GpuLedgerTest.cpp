#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "controller/gpus/GpuChoice.h"
#include "controller/gpus/GpuLedger.h"
#include "tests/support/House.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

PoolSpec gpuSpec(std::uint32_t warm, std::uint32_t count = 1) {
    PoolSpec spec = smallSpec(warm);
    spec.gpu.count = count;
    spec.on_empty = OnEmpty::Fail;
    spec.per_tenant = 1'000;
    return spec;
}

GpuView gpuOf(House& house, unsigned number) {
    return house.gpu_service.get(house.who, FakeGpuHost::uuid(number));
}

std::map<GpuState, std::size_t> states(House& house) {
    std::map<GpuState, std::size_t> counts;
    for (const GpuView& view : house.gpu_service.list(house.who)) ++counts[view.state];
    return counts;
}

/// The plane has found the machine's devices and scrubbed them; pools have what they take.
void scrubbed(House& house) {
    house.gpu_reconciler.look();
    REQUIRE(house.settleUntil([&] { return states(house)[GpuState::Scrubbing] == 0; }));
}

/// A pool with one device for each of its warm sandboxes, which are ready.
struct GpuPool {
    explicit GpuPool(unsigned devices) {
        ground.gpus.have(FakeGpuHost::several(devices));
        house.declare("p", gpuSpec(devices));
        scrubbed(house);
        REQUIRE(house.filled("p", devices));
    }

    Ground ground;
    House house{ground};
};

/// A pool "q" without spares, and a claim to it that waits without a thread.
WorkspaceRequest waitingIn(House& house) {
    PoolSpec spec = gpuSpec(0);
    spec.on_empty = OnEmpty::Queue;
    house.declare("q", spec);
    WorkspaceRequest request = House::request();
    request.pool = "q";
    request.patience.waits = false;
    request.patience.wait = std::make_shared<ClaimWait>();
    return request;
}

}  // namespace

TEST_CASE("a device whose past nobody knows is scrubbed before anybody gets it", "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(2));
    House house(ground);
    house.declare("p", gpuSpec(2));
    house.recover();
    CHECK(states(house)[GpuState::Free] == 0);
    REQUIRE(house.filled("p", 2));
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 1);
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(2)) == 1);
    CHECK(states(house)[GpuState::Leased] == 2);
}

TEST_CASE("a pool makes as many sandboxes as there are devices, and says what it lacks",
          "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(3));
    House house(ground);
    house.declare("p", gpuSpec(4));
    scrubbed(house);
    REQUIRE(house.filled("p", 3));
    house.pool_reconciler.reconcile("p");
    CHECK(house.warm.counts("p").total() == 3);
    const PoolStatus status = house.statuses.of("p");
    const auto condition =
        std::find_if(status.conditions.begin(), status.conditions.end(),
                     [](const PoolCondition& c) { return c.type == ConditionType::GpusAvailable; });
    REQUIRE(condition != status.conditions.end());
    CHECK_FALSE(condition->status);
    CHECK(condition->message == "needs 1 of 3 fitting GPUs, and 0 are free; 3 Leased");
    // Want of devices is no failure: nothing is put off.
    CHECK(house.breaker.state("p").failures == 0);
}

TEST_CASE("a device comes back only after its scrub, and one whose scrub fails stays out",
          "[unit][gpu]") {
    GpuPool filled(1);
    Ground& ground = filled.ground;
    House& house = filled.house;
    const WorkspaceView view = house.workspaces.create(house.who, House::request());
    CHECK(view.gpus == std::vector<std::string>{FakeGpuHost::uuid(1)});
    CHECK(gpuOf(house, 1).holders.at(0).workspace == view.id);

    house.workspaces.close(house.who, view.id);
    REQUIRE(house.filled("p", 1));
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 2);

    ground.gpus.failScrubs(FakeGpuHost::uuid(1), "a byte was not zero");
    const WorkspaceView second = house.workspaces.create(house.who, House::request());
    house.workspaces.close(house.who, second.id);
    REQUIRE(house.settleUntil([&] { return gpuOf(house, 1).state == GpuState::Condemned; }));
    CHECK(gpuOf(house, 1).reason == "a byte was not zero");
    house.pool_reconciler.reconcile("p");
    CHECK(house.warm.counts("p").total() == 0);
    CHECK(house.logged("gpu.condemned").size() == 1);

    ground.gpus.failScrubs(FakeGpuHost::uuid(1), "");
    house.gpu_service.scrub(house.who, FakeGpuHost::uuid(1));
    REQUIRE(house.filled("p", 1));
    CHECK_THROWS_AS(house.gpu_service.scrub(house.who, FakeGpuHost::uuid(1)), Error);
}

TEST_CASE("a scrub that came to nothing condemns no device, and is done again", "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(1));
    ground.gpus.fallSilent(true);
    House house(ground);
    house.gpu_reconciler.look();
    house.loop.settle();
    CHECK(gpuOf(house, 1).state == GpuState::Scrubbing);
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 1);
    ground.gpus.fallSilent(false);
    ground.manual.advance(31s);
    REQUIRE(house.settleUntil([&] { return gpuOf(house, 1).state == GpuState::Free; }));
}

TEST_CASE("a GPU is nobody's while a sandbox has an instance of it, also one that is gone",
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

TEST_CASE("a condemned device is condemned after a restart too", "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(1));
    ground.gpus.failScrubs(FakeGpuHost::uuid(1), "it hangs");
    {
        House house(ground);
        house.gpu_reconciler.look();
        REQUIRE(house.settleUntil([&] { return gpuOf(house, 1).state == GpuState::Condemned; }));
    }
    House house(ground);
    house.recover();
    house.loop.settle();
    CHECK(gpuOf(house, 1).state == GpuState::Condemned);
    CHECK(gpuOf(house, 1).reason == "it hangs");
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 1);
}

TEST_CASE("a lease outlives the server, also where its data file is lost", "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(2));
    std::string workspace;
    {
        House house(ground);
        house.declare("p", gpuSpec(2));
        scrubbed(house);
        REQUIRE(house.filled("p", 2));
        workspace = house.workspaces.create(house.who, House::request()).id;
    }
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

TEST_CASE("what was clean is so after a restart, unless another server had the devices meanwhile",
          "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(2));
    for (int start = 0; start < 3; ++start) {
        House house(ground);
        scrubbed(house);
        CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 1);
    }
    ground.gpus.lendOut();
    for (int start = 0; start < 2; ++start) {
        House house(ground);
        scrubbed(house);
        CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 2);
        CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(2)) == 2);
    }
}

TEST_CASE("the lease of a sandbox that ended while no server ran is scrubbed away", "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(1));
    std::string sandbox;
    {
        House house(ground);
        house.declare("p", gpuSpec(1));
        scrubbed(house);
        REQUIRE(house.filled("p", 1));
        sandbox = house.warm.members("p").front().id;
    }
    ground.runtime.destroy(sandbox);
    House house(ground);
    house.recover();
    REQUIRE(house.filled("p", 1));
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 2);
}

TEST_CASE("a device with a fault is not given out, and spares do not keep it", "[unit][gpu]") {
    GpuPool filled(2);
    Ground& ground = filled.ground;
    House& house = filled.house;
    std::vector<pool::GpuDevice> devices = FakeGpuHost::several(2);
    devices[0].fault = "XID 79: the GPU has fallen off the bus";
    ground.gpus.have(devices);
    house.gpu_reconciler.look();
    house.loop.settle();
    CHECK(house.warm.counts("p").ready == 2);  // it may pass
    house.gpu_reconciler.look();
    REQUIRE(house.settleUntil([&] { return gpuOf(house, 1).state == GpuState::Faulty; }));
    CHECK(house.warm.counts("p").ready == 1);
    CHECK(gpuOf(house, 1).reason == "XID 79: the GPU has fallen off the bus");
    ground.gpus.have(FakeGpuHost::several(2));
    house.gpu_reconciler.look();
    REQUIRE(house.filled("p", 2));
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 2);
}

TEST_CASE("a waiting claim goes before the spares of another pool", "[unit][gpu]") {
    GpuPool filled(1);
    House& house = filled.house;
    const WorkspaceRequest request = waitingIn(house);
    std::optional<WorkspaceView> view;
    REQUIRE(house.settleUntil([&] {
        try {
            if (!view) view = house.workspaces.create(house.who, request);
        } catch (const MustWait&) {
        }
        return view.has_value();
    }));
    CHECK(view->gpus.size() == 1);
    house.pool_reconciler.reconcile("p");
    CHECK(house.warm.counts("p").ready == 0);
}

TEST_CASE("a claim of more devices than are to be had takes none from other pools", "[unit][gpu]") {
    GpuPool filled(3);
    House& house = filled.house;
    WorkspaceRequest taken = House::request();
    taken.pool = "p";
    const std::string first = house.workspaces.create(house.who, taken).id;
    house.workspaces.create(house.who, taken);
    const WorkspaceRequest request = waitingIn(house);
    std::size_t got = 0;
    const auto claim = [&] {
        try {
            if (got == 0) got = house.workspaces.createAll(house.who, request, 2).size();
        } catch (const MustWait&) {
        }
        return got > 0;
    };
    CHECK_FALSE(claim());
    house.loop.settle();
    house.pool_reconciler.reconcile("q");
    house.loop.settle();
    CHECK(house.warm.counts("p").ready == 1);
    CHECK(house.warm.counts("q").total() == 0);

    house.workspaces.close(house.who, first);
    CHECK(house.settleUntil(claim));
    CHECK(got == 2);
}

TEST_CASE("a changed template replaces sandboxes also where the old ones have all devices",
          "[unit][gpu]") {
    GpuPool filled(1);
    Ground& ground = filled.ground;
    House& house = filled.house;
    const std::string before = house.warm.members("p").front().template_hash;
    PoolSpec changed = gpuSpec(1);
    changed.limits.pids = 77;
    house.declare("p", changed);
    REQUIRE(house.settleUntil([&] {
        const std::vector<pool::Member> all = house.warm.members("p");
        return all.size() == 1 && all.front().phase == pool::Phase::Ready &&
               all.front().template_hash != before;
    }));
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(1)) == 2);
}

TEST_CASE("a claim that waits for one product keeps no device of another from a pool",
          "[unit][gpu]") {
    Ground ground;
    ground.gpus.have({FakeGpuHost::device(1, "NVIDIA A100-SXM4-40GB")});
    House house(ground);
    house.gpu_reconciler.look();
    GpuSpec a100;
    a100.count = 1;
    a100.products = {"A100"};
    GpuSpec h100 = a100;
    h100.products = {"H100"};
    CHECK_FALSE(house.gpus.overlap(a100, h100));
    CHECK(house.gpus.overlap(a100, a100));
    CHECK_FALSE(house.gpus.overlap(GpuSpec(), h100));
}

TEST_CASE("a device that has gone is forgotten, and scrubbed when it comes back", "[unit][gpu]") {
    Ground ground;
    ground.gpus.have(FakeGpuHost::several(2));
    {
        House house(ground);
        scrubbed(house);
        ground.gpus.have(FakeGpuHost::several(1));
        house.gpu_reconciler.look();
        CHECK(house.gpu_service.list(house.who).size() == 1);
        // A driver that shows none may only not have answered yet.
        ground.gpus.have({});
        house.gpu_reconciler.look();
    }
    House house(ground);
    ground.gpus.have(FakeGpuHost::several(2));
    house.recover();
    house.loop.settle();
    CHECK(ground.gpus.scrubs(FakeGpuHost::uuid(2)) == 2);
}

TEST_CASE("a device in use that has gone keeps its lease", "[unit][gpu]") {
    GpuPool filled(2);
    Ground& ground = filled.ground;
    House& house = filled.house;
    const WorkspaceView view = house.workspaces.create(house.who, House::request());
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

TEST_CASE("products are preferred in their order, MIG instances and shared devices are apart",
          "[unit][gpu]") {
    Ground ground;
    std::vector<pool::GpuDevice> devices{FakeGpuHost::device(1, "NVIDIA A100-SXM4-40GB"),
                                         FakeGpuHost::device(2), FakeGpuHost::device(3)};
    devices[2].split = true;
    pool::GpuDevice instance{FakeGpuHost::uuid(4, "MIG-"), "NVIDIA H100 80GB HBM3", 10ULL << 30U,
                             FakeGpuHost::uuid(3), "1g.10gb"};
    devices.push_back(instance);
    ground.gpus.have(devices);
    House house(ground);
    scrubbed(house);
    GpuLedger& ledger = house.gpus;

    GpuSpec spec;
    spec.count = 1;
    spec.products = {"H100", "A100"};
    CHECK(ledger.take("sb_a", "p", spec).uuids == std::vector{FakeGpuHost::uuid(2)});
    CHECK(ledger.take("sb_b", "p", spec).uuids == std::vector{FakeGpuHost::uuid(1)});
    CHECK(ledger.take("sb_c", "p", spec).lack ==
          "needs 1 of 2 fitting GPUs, and 0 are free; 2 Leased");
    spec.sharing = GpuSharing::Mig;
    spec.products = {"1g.10gb"};
    CHECK(ledger.take("sb_d", "p", spec).uuids == std::vector{instance.uuid});

    ledger.drop("sb_a");
    GpuSpec shared;
    shared.count = 1;
    shared.sharing = GpuSharing::Shared;
    shared.shared_by = 2;
    CHECK(ledger.take("sb_e", "s", shared).uuids == std::vector{FakeGpuHost::uuid(2)});
    CHECK(ledger.take("sb_f", "s", shared).uuids == std::vector{FakeGpuHost::uuid(2)});
    CHECK(ledger.take("sb_g", "s", shared).uuids.empty());
    ledger.drop("sb_b");
    CHECK(ledger.take("sb_h", "p", shared, 1).uuids.empty());
    CHECK(ledger.take("sb_h", "p", shared).uuids == std::vector{FakeGpuHost::uuid(1)});
}

TEST_CASE("a manifest asks for what the machine can have, or is refused by its field",
          "[unit][gpu]") {
    const auto field = [](const GpuSpec& spec, const std::vector<pool::GpuDevice>& devices) {
        const std::optional<FieldError> wrong = refusalOf(spec, devices, "no GPU library");
        return wrong ? wrong->pointer + " " + wrong->reason : "";
    };
    const std::vector<pool::GpuDevice> two = FakeGpuHost::several(2);
    GpuSpec spec;
    CHECK(field(spec, {}).empty());
    spec.count = 3;
    CHECK(field(spec, {}) == "/spec/template/gpu/count must be 0: no GPU library");
    CHECK(field(spec, two) ==
          "/spec/template/gpu/count is 3, and only 2 fit; this machine has 2 of NVIDIA H100 80GB "
          "HBM3");
    spec.count = 2;
    CHECK(field(spec, two).empty());
    spec.products = {"A10"};
    CHECK(field(spec, two) ==
          "/spec/template/gpu/product no device is one of these; this machine has 2 of NVIDIA "
          "H100 80GB HBM3");
    spec.products = {"A10", "h100 80gb"};
    CHECK(field(spec, two).empty());
    spec.sharing = GpuSharing::Mig;
    CHECK(field(spec, two) ==
          "/spec/template/gpu/sharing Mig needs MIG instances; this machine has 2 of NVIDIA H100 "
          "80GB HBM3");
}

namespace {

/// A machine with four devices and two pools, to which things happen, also to its server.
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
    /// Ends the server as kill -9 does, and starts the next.
    void start() {
        house_.reset();
        house_ = std::make_unique<House>(ground_);
        house_->recover();
    }
    void claim(const char* pool) {
        WorkspaceRequest request = House::request();
        request.pool = pool;
        try {
            const WorkspaceView view = house_->workspaces.create(house_->who, request);
            CHECK(view.gpus.size() == (view.pool == "p" ? 1 : 2));
            held_.push_back(view.id);
            ++claims_;
        } catch (const Error&) {  // empty: also an answer
        }
    }
    void close() {
        const std::size_t at = random_() % held_.size();
        try {
            house_->workspaces.close(house_->who, held_[at]);
        } catch (const Error&) {  // it has died
        }
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    void death() {
        const std::vector<pool::Member> all = house_->warm.all();
        if (!all.empty()) ground_.runtime.kill(all[random_() % all.size()].id);
    }
    /// Sandboxes that exist, whatever the server knows of them: one for each device, and a scrub
    /// between one and the next.
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

TEST_CASE(
    "no device is in two sandboxes, and none is given again without a scrub, whatever "
    "happens to sandboxes and server",
    "[unit][gpu]") {
    unsigned claims = 0;
    for (unsigned seed = 1; seed <= 5; ++seed) {
        GpuWeather weather(seed);
        for (int i = 0; i < 400; ++i) weather.step();
        claims += weather.claims();
    }
    CHECK(claims > 200);
}
