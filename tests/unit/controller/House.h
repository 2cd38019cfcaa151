#pragma once

#include <memory>
#include <string>

#include "base/Ids.h"
#include "controller/Claims.h"
#include "controller/ContextService.h"
#include "controller/EventLog.h"
#include "controller/ExecutionService.h"
#include "controller/Layers.h"
#include "controller/OnDemandPools.h"
#include "controller/Packages.h"
#include "controller/PoolReconciler.h"
#include "controller/Reclaimer.h"
#include "controller/ReconcileLoop.h"
#include "controller/Recovery.h"
#include "controller/SandboxReconciler.h"
#include "controller/SpecStore.h"
#include "controller/WorkspaceService.h"
#include "pool/runtime/FakeRuntime.h"
#include "tests/unit/base/Support.h"

namespace hearth::controller::test {

using namespace hearth::test;

/// An index that has version `version` of whatever is asked for, but for what begins with
/// "missing". Counts what it was asked.
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

/// What survives the end of a server: its sandboxes, its directories and the time.
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
    FakeLayerBuilder packages;
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

/// The part of the server below the protocols, wired as main() does. Its end is a crash for the
/// sandboxes: nothing of them is put away.
class House {
public:
    explicit House(Ground& on, OnDemandRules allowed = {}) : ground(on), rules(std::move(allowed)) {
        executions.collectInto(artifacts);
        loop.handle("artifacts", [this](const std::string&) { return store.prune(); });
        loop.handle("image", [this](const std::string& n) { return on_demand.prepare(n); });
        loop.handle("images", [this](const std::string&) { return on_demand.collect(); });
        loop.handle("pool", [this](const std::string& n) { return pools.reconcile(n); });
        loop.handle("weight", [this](const std::string& n) { return sandboxes.weigh(n); });
        loop.handle("sandbox", [this](const std::string& n) { return sandboxes.reconcile(n); });
        loop.handle("layer", [this](const std::string& n) { return layers.make(n); });
        loop.handle("layers", [this](const std::string&) { return layers.collect(); });
        loop.handle("execution", [this](const std::string& n) { return executions.settle(n); });
        loop.handle("forget", [this](const std::string& n) { return executions.forget(n); });
    }

    House(const House&) = delete;
    House& operator=(const House&) = delete;
    /// As main() does: what the journal calls back must still be there.
    ~House() {
        loop.stop();
        journal.flush(std::chrono::seconds(5));
    }

    void declare(const std::string& name, const PoolSpec& spec) {
        bool created = false;
        specs.put(poolNamed(name, spec), SpecStore::Mode::CreateOrReplace, {}, created);
        work.add({"pool", name});
    }

    Recovery::Outcome recover() {
        const Recovery::Outcome outcome = Recovery(ground.runtime, warm, marks, sandboxes, specs,
                                                   table, executions, journal, log, broker, clock)
                                              .run();
        for (const PoolPtr& pool : specs.all()) work.add({"pool", pool->name});
        return outcome;
    }

    /// Works until `done`, with the loop on this thread; moves the clock a little each time.
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

    static WorkspaceRequest request(const std::string& key = {},
                                    const std::string& fingerprint = "f") {
        WorkspaceRequest out;
        out.idempotency_key = key;
        out.fingerprint = fingerprint;
        return out;
    }

    Ground& ground;
    const OnDemandRules rules;
    const Clock& clock = ground.clock;
    metrics::Log log{-1};  // to nowhere
    metrics::Metrics metrics;
    const std::string secret = "a key of thirty-two bytes.......";
    agent::Poller poller;
    Journal journal{ground.dir.file("hearth.db"), clock, log};
    EventLog events{journal, clock};
    SpecStore specs{journal, clock};
    pool::WarmPool warm;
    pool::ClaimMarks marks{ground.dir.file("claimed")};
    WorkQueue work{clock, metrics};
    Breaker breaker{clock};
    ClaimQueue queue{warm, work, breaker, metrics, clock};
    WorkspaceTable table;
    broker::Broker broker{{}, log, metrics, clock};
    Layers layers{ground.runtime,
                  ground.packages,
                  LayerLocks(ground.dir.file("layers")),
                  specs,
                  work,
                  breaker,
                  events,
                  log,
                  clock};
    Endings endings{table, warm, work, journal, events, metrics, log, broker, clock};
    SandboxReconciler sandboxes{ground.runtime, warm, marks,  poller,  specs, endings, queue,
                                breaker,        work, events, metrics, log,   layers,  clock};
    PoolOutside outside{broker, log, clock};
    PoolReconciler pools{specs, warm,   queue,   breaker, endings, work,
                         table, events, metrics, layers,  outside, clock};
    Claims claims{table,  queue,   sandboxes, ground.runtime, marks, endings, work, journal,
                  events, metrics, log,       broker,         clock};
    OnDemandPools on_demand{rules,  ground.runtime, specs, warm, queue, work,
                            events, metrics,        log,   "p",  clock};
    WorkspaceService workspaces{table,          claims,    endings, specs, journal, sandboxes, warm,
                                ground.runtime, on_demand, broker,  "p",   secret,  clock};
    ArtifactStore store{ground.dir.file("artifacts"), table, journal, log, clock};
    Artifacts artifacts{store, log, secret, clock};
    ExecutionService executions{workspaces, table, endings, journal, ground.runtime, work, events,
                                metrics,    log,   secret,  {},      clock};
    ContextService contexts{workspaces, table, endings, journal, events, metrics, secret, clock};
    ReconcileLoop loop{work, metrics, log, clock};
    Reclaimer reclaimer{table, endings, clock};
    Principal who{"default", Role::Admin, ""};
};

}  // namespace hearth::controller::test
