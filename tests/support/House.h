#pragma once

#include <fcntl.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/Ids.h"
#include "base/task/Blocking.h"
#include "controller/ControlPlane.h"
#include "controller/packages/PackageSpec.h"
#include "tests/fake/runtime/FakeRuntime.h"
#include "tests/support/FakeGpuHost.h"
#include "tests/support/Stepped.h"
#include "tests/support/Support.h"

namespace hearth::controller::test {

using namespace hearth::test;

/// An index that has version `version` of every package, except those whose names begin with
/// "missing". Counts the requests.
class FakeLayerBuilder final : public LayerBuilder {
public:
    BuiltLayer build(const LayerOrder& order) override {
        ++builds;
        if (!failure.empty()) throw Error(ErrorCode::InvalidArgument, failure);
        if (!order.lock.empty()) return {parseLayerLock(order.lock), Fd()};
        ++resolved;
        std::string text;
        for (const std::string& spec : order.specs) {
            const std::string name = packageName(spec);
            if (name.starts_with("missing")) throw Error(ErrorCode::InvalidArgument, "no " + name);
            text += name + "==" + version + " --hash=sha256:" + std::string(64, 'a') + "\n";
        }
        return {parseLayerLock(text), Fd()};
    }

    std::string version = "1.0";
    std::string failure;
    unsigned builds = 0;
    unsigned resolved = 0;
};

/// The things that survive the end of a server: its sandboxes, its directories and the time.
struct Ground {
    explicit Ground(const Clock* other = nullptr)
        : clock(other == nullptr ? static_cast<const Clock&>(manual) : *other) {}
    void loseData() const {
        for (const char* suffix : {"", "-wal", "-shm"}) {
            std::filesystem::remove(dir.file(std::string("hearth.db") + suffix));
        }
    }

    TempDir dir;
    ManualClock manual;
    const Clock& clock;
    pool::FakeRuntime runtime{clock};
    FakeGpuHost gpus;
    FakeLayerBuilder packages;
    std::optional<DiskSpace> disk;  ///< of workspaces; nullopt: everything fits
};

inline Pool poolNamed(const std::string& name, const PoolSpec& spec) {
    return parsePool(poolDocument(name, spec));
}

inline PoolSpec smallSpec(std::uint32_t min = 2) {
    PoolSpec spec;
    spec.image = "python";
    spec.warm_min = min;
    return spec;
}

/// The same, with an image that a cluster may have.
inline PoolSpec pulledSpec(std::uint32_t min = 2) {
    PoolSpec spec = smallSpec(min);
    spec.allow_tags = true;
    return spec;
}

/// The base of a control plane in tests: the journal of a ground, and the log, metrics and poller.
struct HouseGround {
    HouseGround(Ground& on, JournalLimits limits)
        : ground(on), journal(on.dir.file("hearth.db"), on.clock, log, told(limits)) {
        on.runtime.begin();
    }
    JournalLimits told(JournalLimits limits) {
        limits.metrics = &metrics;
        return limits;
    }
    Foundation foundation() {
        return {ground.runtime, poller, journal, metrics, log, ground.clock, ground.gpus, tracer};
    }
    PlaneOptions options(OnDemandRules rules) const {
        return {.secret_key = secret,
                .default_pool = "p",
                .marks = ground.dir.file("claimed"),
                .layers = ground.dir.file("layers"),
                .artifacts = ground.dir.file("artifacts"),
                .on_demand = std::move(rules),
                .disk = DiskBudget([&on = ground] { return on.disk; }, 0, 1),
                .layer_builder = &ground.packages};
    }

    /// Returns the lines of the log about an event, from all planes of the ground together.
    std::vector<std::string> logged(const std::string& event) const {
        std::istringstream in(readText(ground.dir.file("log")));
        std::vector<std::string> lines;
        for (std::string line; std::getline(in, line);) {
            if (line.find(" event=" + event + " ") != std::string::npos) lines.push_back(line);
        }
        return lines;
    }

    Ground& ground;
    const Clock& clock = ground.clock;
    Fd log_file{
        ::open(ground.dir.file("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
    metrics::Log log{log_file.get(), metrics::LogLevel::Debug};
    metrics::Metrics metrics;
    metrics::Tracer tracer;
    const std::string secret = "a key of thirty-two bytes.......";
    agent::Poller poller;
    Journal journal;
};

/// The control plane over a fake runtime. For the sandboxes its end is a crash.
class House : public HouseGround, public ControlPlane {
public:
    explicit House(Ground& on, OnDemandRules allowed = {}, JournalLimits limits = {})
        : HouseGround(on, limits),
          ControlPlane(HouseGround::foundation(), HouseGround::options(std::move(allowed))) {}
    House(const House&) = delete;
    House& operator=(const House&) = delete;
    /// Stops in the server's order: objects that the journal calls back must still exist.
    ~House() {
        loop.stop();
        journal.flush(std::chrono::seconds(5));
    }

    void declare(const std::string& name, const PoolSpec& spec) {
        bool created = false;
        specs.put(poolNamed(name, spec), SpecStore::Mode::CreateOrReplace, {}, created);
        work.add({WorkKind::Pool, name});
    }

    Recovery::Outcome recover() {
        const Recovery::Outcome outcome = ControlPlane::recover();
        // Sweeps at once, so that a test sees the rest.
        if (const auto again = orphans.sweep().again)
            work.addAfter({WorkKind::Sweep, "all"}, *again);
        for (const PoolPtr& pool : specs.all()) work.add({WorkKind::Pool, pool->name});
        return outcome;
    }

    /// Works until `done()`, with the loop on this thread; moves the clock a little each time.
    bool settleUntil(const std::function<bool()>& done) {
        return eventually([&] {
            loop.settle();
            if (done()) return true;
            ground.manual.advance(std::chrono::microseconds(100));
            return false;
        });
    }

    bool filled(const std::string& pool, std::size_t ready) {
        return settleUntil([&] { return warm.counts(pool).ready >= ready; });
    }

    /// A claim that the test runs by hand.
    Stepped<WorkspaceView> claiming(const Principal& as, const WorkspaceRequest& request) {
        return {workspaces.create(as, request), clock};
    }
    // Claims that wait in the thread that calls.
    WorkspaceView open(const Principal& as, const WorkspaceRequest& request) {
        return resultOf(workspaces.create(as, request), clock);
    }
    std::vector<WorkspaceView> openAll(const Principal& as, const WorkspaceRequest& request,
                                       std::size_t count) {
        return resultOf(workspaces.createAll(as, request, count), clock);
    }
    std::shared_ptr<Execution> runOnce(const Principal& as, const WorkspaceRequest& where,
                                       const ExecutionRequest& run) {
        return resultOf(executions.startOneShot(as, where, run), clock);
    }

    static WorkspaceRequest request(const std::string& key = {},
                                    const std::string& fingerprint = "f") {
        WorkspaceRequest out;
        out.idempotency_key = key;
        out.fingerprint = fingerprint;
        return out;
    }

    Principal who{"default", Role::Admin, ""};
};

}  // namespace hearth::controller::test
