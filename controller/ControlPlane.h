#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/Lifeline.h"
#include "controller/Recovery.h"
#include "controller/SuspectSandboxes.h"
#include "controller/claims/ClaimQueue.h"
#include "controller/claims/Claimer.h"
#include "controller/claims/ImageFetcher.h"
#include "controller/claims/KeyedIds.h"
#include "controller/claims/OnDemandPools.h"
#include "controller/claims/PoolChooser.h"
#include "controller/claims/Supply.h"
#include "controller/claims/WorkspaceOpener.h"
#include "controller/egress/EgressGateway.h"
#include "controller/egress/images/ImageGateway.h"
#include "controller/executions/ArtifactCollector.h"
#include "controller/executions/ArtifactStore.h"
#include "controller/executions/ExecutionEnds.h"
#include "controller/executions/ExecutionSettler.h"
#include "controller/executions/ExecutionStarter.h"
#include "controller/executions/LiveExecutions.h"
#include "controller/forecast/Forecasts.h"
#include "controller/gpus/GpuLedger.h"
#include "controller/journal/DiskReserve.h"
#include "controller/layers/LayerBuilder.h"
#include "controller/layers/Layers.h"
#include "controller/queue/CircuitBreaker.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/queue/WorkQueue.h"
#include "controller/quota/QuotaLedger.h"
#include "controller/reconcile/AgentConnector.h"
#include "controller/reconcile/GpuReconciler.h"
#include "controller/reconcile/OpenFilesWatch.h"
#include "controller/reconcile/OrphanSweep.h"
#include "controller/reconcile/PoolDependencies.h"
#include "controller/reconcile/PoolReconciler.h"
#include "controller/reconcile/PoolStatuses.h"
#include "controller/reconcile/ReadyProbe.h"
#include "controller/reconcile/SandboxReconciler.h"
#include "controller/reconcile/SandboxStarter.h"
#include "controller/reconcile/WarmReconnector.h"
#include "controller/services/ContextService.h"
#include "controller/services/ExecutionService.h"
#include "controller/services/GpuService.h"
#include "controller/services/OneShots.h"
#include "controller/services/PackageService.h"
#include "controller/services/PoolService.h"
#include "controller/services/QuotaService.h"
#include "controller/services/TimelineService.h"
#include "controller/services/UsageService.h"
#include "controller/services/WorkspaceService.h"
#include "controller/store/Epoch.h"
#include "controller/store/EventLog.h"
#include "controller/store/History.h"
#include "controller/store/SpecStore.h"
#include "controller/workspaces/Pauser.h"
#include "controller/workspaces/Reclaimer.h"
#include "controller/workspaces/UsageMeter.h"
#include "controller/workspaces/WorkspaceAccess.h"
#include "controller/workspaces/WorkspaceTable.h"
#include "controller/workspaces/WorkspaceTerminator.h"
#include "pool/gpu/GpuHost.h"
#include "pool/runtime/ContainerRuntime.h"
#include "pool/warm/ClaimMarks.h"
#include "pool/warm/Fleet.h"
#include "pool/warm/WarmPool.h"

namespace hearth::controller {

/// The services that the control plane needs. All of them outlive the plane.
struct Foundation {
    pool::ContainerRuntime& runtime;
    agent::Poller& poller;
    Journal& journal;
    metrics::Metrics& metrics;
    metrics::Log& log;
    const Clock& clock;
    pool::GpuHost& gpus;
    const metrics::Tracer& tracer;
};

/// The plane's options, from the configuration and the instance.
struct PlaneOptions {
    std::string secret_key;    ///< the instance's 32 random bytes
    std::string default_pool;  ///< for claims that name no pool; empty: there is none
    std::string marks;         ///< file of claim marks
    std::string layers;        ///< folder of layers' locks
    std::string traces = {};   ///< folder of recorded arrivals; empty: none are recorded
    std::string artifacts;     ///< folder of kept copies
    OnDemandRules on_demand = {};
    std::vector<std::string> insecure_registries = {};
    egress::EgressOptions egress = {};
    egress::DenySet deny = {};         ///< for image fetches
    egress::OperatorProxy proxy = {};  ///< likewise
    DiskBudget disk = {};              ///< for workspaces
    const DiskReserve* reserve = nullptr;
    std::function<void()> measure = [] {};  ///< sets gauges that no event sets; may block
    std::uint64_t term = 0;                 ///< this replica's term as the leader; see Epoch
    LayerBuilder* layer_builder = nullptr;  ///< replaces the sandboxes that build; for tests
};

/// All parts below the protocols, wired once, in the order in which they need each other; they are
/// destroyed in the reverse order. The server serves from them, and tests look into them. For its
/// sandboxes the end of a plane is a crash: nothing of them is cleaned up.
struct ControlPlane {
    ControlPlane(const Foundation& on, PlaneOptions with);
    ControlPlane(const ControlPlane&) = delete;
    ControlPlane& operator=(const ControlPlane&) = delete;
    ~ControlPlane() = default;

    /// Adds the work of a start: every pool, and all periodic work. From now on the runtime's
    /// news become work.
    void begin();
    /// Runs recovery, and adds its silent sandboxes as work. Call before begin().
    Recovery::Outcome recover();

    const Foundation foundation;
    const PlaneOptions options;
    EventLog events;
    const History history;
    SpecStore specs;
    Epoch epoch;
    pool::WarmPool warm;
    pool::ClaimMarks marks;
    const pool::Fleet fleet;
    WorkQueue work;
    CircuitBreaker breaker;
    QuotaLedger quotas;
    ClaimQueue line;
    Forecasts forecasts;
    GpuLedger gpus;
    const Supply supply;
    WorkspaceTable table;
    egress::EgressGateway gateway;
    UsageMeter usage;
    WorkspaceTerminator terminator;
    SandboxLayerBuilder layer_builder;
    Layers layers;
    AgentConnector agents;
    ImageUnpacking unpacking;
    SandboxStarter starter;
    WarmReconnector reconnector;
    SandboxReconciler sandboxes;
    PoolDependencies outside;
    PoolStatuses statuses;
    PoolReconciler pool_reconciler;
    GpuReconciler gpu_reconciler;
    ReadyProbe probes;
    OpenFilesWatch files;
    Claimer claimer;
    const egress::ImageGateway image_gateway;
    ImageFetcher images;
    OnDemandPools on_demand;
    PoolChooser chooser;
    const KeyedIds ids;
    Pauser pauser;
    WorkspaceAccess access;
    WorkspaceOpener opener;
    WorkspaceService workspaces;
    ArtifactStore artifact_store;
    ArtifactCollector artifacts;
    LiveExecutions live;
    ExecutionEnds execution_ends;
    ExecutionSettler settler;
    ExecutionStarter execution_starter;
    ExecutionService executions;
    OneShots one_shots;
    ContextService contexts;
    Recovery recovery;
    SuspectSandboxes suspects;
    OrphanSweep orphans;
    PackageService packages;
    PoolService pools;
    QuotaService quota_service;
    GpuService gpu_service;
    TimelineService timelines;
    UsageService usage_reports;
    ReconcileLoop loop;
    Reclaimer reclaimer;
    /// How long to wait for an agent that may be silent, at the start and later.
    std::chrono::milliseconds patience = Recovery::kFirstAnswer;

private:
    void handleWork();

    /// For the runtime, which outlives the plane and may still report news then.
    const Lifeline<ControlPlane> lifeline_{*this};
};

}  // namespace hearth::controller
