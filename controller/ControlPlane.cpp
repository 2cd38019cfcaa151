#include "controller/ControlPlane.h"

#include <utility>

namespace hearth::controller {
namespace {

constexpr auto kOrphanSweep = std::chrono::seconds(60);
constexpr auto kMeasureEvery = std::chrono::seconds(15);
/// How often a sandbox that ends looks for the records that it still waits for.
constexpr auto kRecordLook = std::chrono::milliseconds(2);

}  // namespace

ControlPlane::ControlPlane(const Foundation& on, PlaneOptions with)
    : foundation(on),
      options(std::move(with)),
      events(on.journal, on.clock),
      history{on.journal, events, on.metrics, on.log, on.clock, on.tracer},
      specs(on.journal, on.clock),
      epoch(options.term),
      marks(options.marks),
      fleet{on.runtime, warm, marks},
      work(on.clock, on.metrics),
      breaker(on.clock),
      line(warm, work, breaker, on.metrics, on.clock, ClaimQueue::Bounds(), quotas),
      forecasts(options.traces),
      gpus(on.gpus, work, history,
           on.runtime.inCluster() ? GpuPlacement::Cluster : GpuPlacement::Machine),
      supply{warm, line, breaker, work, forecasts, gpus},
      table(quotas),
      gateway(options.egress, on.log, on.metrics, on.clock, on.tracer),
      usage(table, on.runtime, gateway, quotas, history),
      terminator(table, fleet, epoch, work, history, gateway, usage),
      layer_builder(on.runtime, on.poller, gateway, epoch, options.layers, on.log, on.clock),
      layers(on.runtime, options.layer_builder != nullptr ? *options.layer_builder : layer_builder,
             LayerLocks(options.layers), specs, work, breaker, history),
      agents(on.runtime, on.poller, epoch, work, on.clock),
      unpacking(on.runtime, work),
      starter(on.runtime, supply, agents, unpacking, specs, layers, history),
      reconnector(fleet, supply, agents, terminator, history),
      sandboxes(fleet, supply, agents, starter, reconnector, terminator, usage),
      outside(gateway, on.log, on.clock),
      statuses(supply, table, layers, outside, on.runtime, history),
      pool_reconciler(specs, supply, terminator, layers, options.disk, statuses, history),
      gpu_reconciler(on.runtime, supply, specs, terminator, history),
      probes(warm, terminator, work, history),
      files(table, warm, terminator, on.runtime, history),
      claimer(table, supply, epoch, fleet, terminator, history, gateway),
      image_gateway(options.deny, options.proxy, {on.log, on.metrics, on.clock, on.tracer}),
      images(on.runtime, image_gateway, options.insecure_registries, events, on.log),
      on_demand(options.on_demand, options.default_pool, on.runtime, specs, supply, images,
                history),
      chooser(specs, warm, on.runtime, table, on_demand, options.default_pool),
      ids(options.secret_key),
      pauser(table, terminator, on.runtime, work, history),
      access(table, terminator, on.runtime, pauser, history),
      opener(access, table, chooser, claimer, terminator, ids, history),
      workspaces(access, opener, table, terminator, epoch, gateway, history),
      artifact_store(options.artifacts, table, on.journal, on.log, on.clock,
                     {.reserve = options.reserve}),
      artifacts(artifact_store, on.log, options.secret_key, on.clock),
      execution_ends(live, artifacts, on.runtime, work, history),
      settler(live, table, terminator, work, history),
      execution_starter(live, settler, execution_ends, access, terminator, gateway.mirrored(),
                        history),
      executions(access, opener, live, execution_starter, artifact_store, ids, history),
      one_shots(live, table, terminator, on.journal),
      contexts(access, table, ids, history),
      recovery(fleet, agents, specs, table, gpus, execution_starter, history, gateway),
      suspects(recovery, on.runtime, table, specs, terminator, pauser, history),
      orphans(fleet, work, history),
      packages(executions, workspaces, gateway.mirrored()),
      pools(specs, pool_reconciler, supply, table, terminator, history,
            {on.runtime.facts().name, on.runtime.freezes(), on.runtime.inCluster(),
             on.runtime.ownClaim()}),
      quota_service(quotas, specs, supply, history),
      gpu_service(gpus, warm),
      timelines(executions, history),
      usage_reports(usage.book(), on.clock),
      loop(work, on.metrics, on.log, on.clock, on.tracer),
      reclaimer(table, terminator, pauser, on.clock) {
    handleWork();
}

void ControlPlane::handleWork() {
    using Name = std::string;
    loop.handle(WorkKind::Pool,
                [this](const Name& name) { return pool_reconciler.reconcile(name); });
    loop.handle(WorkKind::Sandbox, [this](const Name& id) {
        // A sandbox that makes a layer is neither a pool's member nor an orphan.
        if (layer_builder.owns(id)) {
            layer_builder.notice();
            return ReconcileResult::settled();
        }
        return orphans.watch(id, [this](const pool::SandboxId& its_id) {
            const std::optional<pool::Member> member = warm.find(its_id);
            const bool ends = member && (member->phase == pool::Phase::Draining ||
                                         member->phase == pool::Phase::Failed);
            if (ends && !member->workspace.empty() && !settler.allRecorded(its_id)) {
                return ReconcileResult::after(kRecordLook);
            }
            return sandboxes.reconcile(its_id);
        });
    });
    loop.handle(WorkKind::Create, [this](const Name& id) { return starter.create(id); });
    loop.handle(WorkKind::Unpack, [this](const Name& image) { return unpacking.unpack(image); });
    loop.handle(WorkKind::Lost, [this](const Name& id) { return sandboxes.lose(id); });
    loop.handle(WorkKind::Weight, [this](const Name& id) { return sandboxes.weigh(id); });
    loop.handle(WorkKind::Pause, [this](const Name& id) { return pauser.pause(id); });
    loop.handle(WorkKind::Suspect,
                [this](const Name& id) { return suspects.reconcile(id, patience); });
    loop.handle(WorkKind::Layer, [this](const Name& pool) { return layers.make(pool); });
    loop.handle(WorkKind::Layers, [this](const Name&) { return layers.collect(); });
    loop.handle(WorkKind::Execution, [this](const Name& id) { return settler.settle(id); });
    loop.handle(WorkKind::Forget, [this](const Name& id) { return settler.forget(id); });
    loop.handle(WorkKind::Overdue, [this](const Name&) { return settler.endOverdue(); });
    loop.handle(WorkKind::OneShot, [this](const Name& id) { return one_shots.settle(id); });
    loop.handle(WorkKind::AdoptedOneShot,
                [this](const Name& id) { return one_shots.settleAdopted(id); });
    loop.handle(WorkKind::Image, [this](const Name& name) { return on_demand.prepare(name); });
    loop.handle(WorkKind::Images, [this](const Name&) { return on_demand.collect(); });
    loop.handle(WorkKind::Artifacts, [this](const Name&) { return artifact_store.prune(); });
    loop.handle(WorkKind::Orphans, [this](const Name&) { return orphans.orphans(); });
    loop.handle(WorkKind::Measure, [this](const Name&) {
        options.measure();
        quota_service.measure();
        return ReconcileResult::after(kMeasureEvery);
    });
    loop.handle(WorkKind::Usage, [this](const Name&) {
        usage.look();
        return ReconcileResult::after(UsageMeter::pause());
    });
    loop.handle(WorkKind::Gpu, [this](const Name& uuid) { return gpu_reconciler.scrub(uuid); });
    loop.handle(WorkKind::Gpus, [this](const Name&) { return gpu_reconciler.look(); });
    loop.handle(WorkKind::Probe, [this](const Name& id) { return probes.probe(id); });
    loop.handle(WorkKind::Probes, [this](const Name&) { return probes.look(); });
    loop.handle(WorkKind::Files, [this](const Name&) { return files.look(); });
    loop.handle(WorkKind::Sweep, [this](const Name&) { return orphans.sweep(); });
}

void ControlPlane::begin() {
    foundation.runtime.onNews([line = lifeline_.line()](const pool::SandboxId& id) {
        line.reach([&id](ControlPlane& plane) { plane.work.add({WorkKind::Sandbox, id}); });
    });
    for (const PoolPtr& pool : specs.all()) work.add({WorkKind::Pool, pool->name});
    for (const WorkKind kind :
         {WorkKind::Overdue, WorkKind::Images, WorkKind::Layers, WorkKind::Artifacts,
          WorkKind::Sweep, WorkKind::Measure, WorkKind::Usage, WorkKind::Gpus, WorkKind::Probes,
          WorkKind::Files}) {
        work.add({kind, "all"});
    }
    work.addAfter({WorkKind::Orphans, "all"}, kOrphanSweep);
}

Recovery::Outcome ControlPlane::recover() {
    std::vector<pool::SandboxInfo> found = foundation.runtime.list();
    gpus.recover(found);
    gpus.look();
    Recovery::Outcome outcome = recovery.run(std::move(found), patience);
    terminator.endMarked();
    // Another replica's ends: their agents were told.
    if (foundation.runtime.inCluster()) reclaimer.sweep();
    for (const pool::SandboxId& id : outcome.silent) work.add({WorkKind::Suspect, id});
    return outcome;
}

}  // namespace hearth::controller
