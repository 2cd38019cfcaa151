#include "controller/reconcile/SandboxStarter.h"

#include <algorithm>
#include <stdexcept>

#include "base/CrashPoint.h"
#include "base/Error.h"
#include "controller/contract/Executions.h"
#include "controller/gpus/GpuLedger.h"
#include "controller/spec/ClusterRules.h"
#include "controller/spec/TemplateHash.h"
#include "controller/workspaces/SandboxUse.h"

namespace hearth::controller {
namespace {

constexpr auto kAgentStart = std::chrono::seconds(10);
/// How long a sandbox that its runtime has only accepted may take to start.
constexpr auto kStartTime = std::chrono::minutes(5);

/// Sends a few calls that change nothing: the agent's code and memory are then loaded, and the bind
/// of a claim does not pay for it.
void rehearse(agent::AgentClient& agent) {
    for (int i = 0; i < 3; ++i) {
        try {
            agent.touch();
        } catch (const agent::AgentError&) {
            // It refuses this before the bind, which serves the purpose, too.
        }
    }
}

}  // namespace

SandboxStarter::SandboxStarter(pool::SandboxRuntime& runtime, const Supply& supply,
                               AgentConnector& agents, ImageUnpacking& unpacking,
                               const SpecStore& specs, Layers& layers, const History& history)
    : runtime_(runtime),
      supply_(supply),
      agents_(agents),
      unpacking_(unpacking),
      specs_(specs),
      layers_(layers),
      history_(history) {}

ReconcileResult SandboxStarter::create(const pool::SandboxId& id) {
    const std::optional<pool::Member> member = supply_.warm.find(id);
    if (member && member->phase == pool::Phase::Creating) return bringUp(*member);
    if (member && member->phase == pool::Phase::Warming) return goOn(*member);
    return ReconcileResult::settled();  // the work that ended it has added its key
}

bool SandboxStarter::giveUp(const pool::SandboxId& id) {
    std::shared_ptr<Warmup> last;  // declared first: destroyed outside the lock
    const MutexLock lock(mutex_);
    const auto found = warming_.find(id);
    if (found == warming_.end()) return false;
    last = std::move(found->second.warmup);
    warming_.erase(found);
    return true;
}

ReconcileResult SandboxStarter::bringUp(const pool::Member& member) {
    TimePoint since = history_.clock.now();
    bool asked = false;
    ReconcileResult result = ReconcileResult::settled();
    {
        const MutexLock lock(mutex_);
        const auto found = accepted_.find(member.id);
        asked = found != accepted_.end();
        if (asked) since = found->second;
    }
    try {
        if (!asked) {
            const Start started = start(member, since);
            if (started == Start::Waits) return ReconcileResult::settled();
            if (started == Start::Unwanted) {
                supply_.warm.retire(member.id);
                supply_.work.add({WorkKind::Sandbox, member.id, member.pool});
                return ReconcileResult::settled();
            }
        }
        if (!listens(member.id, since)) return ReconcileResult::after(pool::kLookAgain);
        result = warmUp(member, since);
    } catch (const Error& e) {
        failed(member, e.what(), "a sandbox could not be started", e.code() == ErrorCode::DiskFull);
    } catch (const std::exception& e) {
        failed(member, e.what());
    }
    {
        const MutexLock lock(mutex_);
        accepted_.erase(member.id);
    }
    supply_.work.add({WorkKind::Pool, member.pool});
    return result;
}

SandboxStarter::Start SandboxStarter::start(const pool::Member& member, TimePoint since) {
    const PoolPtr pool = specs_.find(member.pool);
    if (!pool) return Start::Unwanted;
    // A stored pool may be older than the servers' volume claim, or come from a single machine.
    if (runtime_.inCluster()) requireFitsCluster(pool->spec, runtime_.ownClaim());
    const std::optional<std::string> digest =
        unpacking_.digestFor(pool->spec.image, {WorkKind::Create, member.id, member.pool});
    // The unpacking may take minutes: without this, nothing would show why the pool stays empty.
    if (supply_.breaker.unpacking(member.pool, digest ? "" : pool->spec.image)) {
        supply_.work.add({WorkKind::Pool, member.pool});
    }
    if (!digest) return Start::Waits;
    pool::SandboxSpec spec;
    spec.image = pool->spec.image;
    spec.image_digest = *digest;
    const std::optional<Layers::Pin> layer = layers_.pin(pool->spec, spec.image_digest);
    if (!layer || templateHash(pool->spec, layer->digest()) != member.template_hash) {
        return Start::Unwanted;
    }
    spec.layer = layer->digest();
    spec.limits = pool->spec.limits;
    spec.storage = pool->spec.storage;
    spec.runtime_class = pool->spec.runtime_class;
    if (!pool->spec.pod_template.empty()) spec.pod_template = dumpJson(pool->spec.pod_template);
    spec.labels = {{"pool", member.pool},
                   {"template", member.template_hash},
                   {"generation", std::to_string(member.generation)}};
    if (!spec.layer.empty()) spec.labels[kLayerLabel] = spec.layer;
    if (!member.gpus.empty()) {
        spec.gpus = member.gpus;
        spec.labels[kGpusLabel] = gpusLabel(member.gpus);
        supply_.gpus.store(member.id);
    }
    crashPoint("create.before");
    const auto started = runtime_.create(member.id, spec);
    crashPoint("create.after");
    if (started == pool::SandboxRuntime::Started::Accepted) {
        const MutexLock lock(mutex_);
        accepted_.emplace(member.id, since);
    }
    return Start::Asked;
}

bool SandboxStarter::listens(const pool::SandboxId& id, TimePoint since) {
    {
        const MutexLock lock(mutex_);
        if (!accepted_.contains(id)) return true;
    }
    const std::optional<pool::SandboxInfo> info = runtime_.find(id);
    if (info && info->alive && info->listening) return true;
    const std::string trouble = info && !info->trouble.empty() ? ": " + info->trouble : "";
    if (!info || !info->alive) throw std::runtime_error("it ended while it started" + trouble);
    if (history_.clock.now() - since > kStartTime) {
        throw std::runtime_error("its agent did not listen in time" + trouble);
    }
    return false;
}

ReconcileResult SandboxStarter::warmUp(const pool::Member& member, TimePoint since) {
    if (!supply_.warm.warming(member.id))
        return ReconcileResult::settled();  // its end was requested
    const TimePoint listened = history_.clock.now();
    const std::shared_ptr<agent::AgentClient> agent = agents_.connect(member.id, kAgentStart);
    if (agent->hello().binding) throw std::runtime_error("a new agent says it is bound");
    const PoolPtr pool = specs_.find(member.pool);
    if (!pool || !Warmup::wanted(pool->spec)) {
        ready(member, agent, since, listened);
        return ReconcileResult::settled();
    }
    {
        const MutexLock lock(mutex_);
        warming_[member.id] = {std::make_shared<Warmup>(
                                   pool->spec, agent,
                                   [&work = supply_.work, id = member.id, of = member.pool] {
                                       work.add({WorkKind::Create, id, of});
                                   },
                                   history_.clock),
                               since, listened};
    }
    return goOn(member);
}

ReconcileResult SandboxStarter::goOn(const pool::Member& member) {
    Warming warming;
    {
        const MutexLock lock(mutex_);
        const auto found = warming_.find(member.id);
        if (found == warming_.end()) return ReconcileResult::settled();
        warming = found->second;
    }
    Warmup::State state = Warmup::State::Failed;
    std::string why;
    try {
        state = warming.warmup->proceed();
        if (state == Warmup::State::Failed) why = warming.warmup->failure();
    } catch (const agent::AgentLost& e) {
        why = e.what();
    }
    if (state == Warmup::State::Working) {
        const auto left =
            warming.warmup->due() - history_.clock.now() + std::chrono::milliseconds(1);
        return ReconcileResult::after(
            std::max<std::chrono::nanoseconds>(left, std::chrono::milliseconds(1)));
    }
    {
        const MutexLock lock(mutex_);
        warming_.erase(member.id);
    }
    if (state == Warmup::State::Failed) {
        failed(member, why, why);
    } else {
        const std::string missing = warming.warmup->missing();
        if (supply_.breaker.prewarmed(member.pool, missing)) {
            history_.events.publish(
                {.type = missing.empty() ? "pool.prewarmed" : "pool.prewarm_failed",
                 .resource = member.pool,
                 .pool = member.pool,
                 .reason = missing.empty() ? "Complete" : "Incomplete",
                 .message = missing.empty() ? "everything requested is warm" : missing});
        }
        ready(member, warming.warmup->agent(), warming.since, warming.listened);
    }
    supply_.work.add({WorkKind::Pool, member.pool});
    return ReconcileResult::settled();
}

void SandboxStarter::bearExecutions(const std::string& pool,
                                    const std::vector<std::string>& languages) {
    for (const char* status : kExecutionStatuses.texts) {
        history_.metrics.bornExecution(pool, "command", status);
        for (const std::string& language : languages) {
            history_.metrics.bornExecution(pool, language, status);
        }
    }
}

std::uint64_t SandboxStarter::cpuOf(const pool::SandboxId& id,
                                    const std::shared_ptr<agent::AgentClient>& agent) {
    try {
        const std::optional<pool::SandboxUsage> usage = sandboxUse(runtime_, id, agent);
        return usage ? usage->cpu_ns : 0;
    } catch (const std::exception& e) {  // then its start counts as its workspace's usage
        history_.log.debug("usage.unknown", {{"sandbox", id}, {"error", e.what()}});
        return 0;
    }
}

void SandboxStarter::ready(const pool::Member& member,
                           const std::shared_ptr<agent::AgentClient>& agent, TimePoint since,
                           TimePoint listened) {
    rehearse(*agent);
    static_cast<void>(runtime_.goFirst(member.id, true));  // without it, the sandbox is only slower
    static_cast<void>(runtime_.takeMemoryPeak(member.id));  // what its start held, no tenant pays
    if (!supply_.warm.ready(member.id, agent, history_.clock.wall(),
                            {.create = listened - since,
                             .warm = history_.clock.now() - listened,
                             .cpu_ns = cpuOf(member.id, agent)})) {
        return;  // lost while it warmed
    }
    bearExecutions(member.pool, agent->hello().languages);
    supply_.breaker.succeeded(member.pool, history_.clock.now() - since);
    supply_.forecasts.started(member.pool, history_.clock.now() - since);
    const double seconds = toSeconds(history_.clock.now() - since);
    history_.metrics.sandboxStart(member.pool, seconds);
    history_.log.debug("sandbox.ready",
                       {{"sandbox", member.id}, {"pool", member.pool}, {"seconds", seconds}});
    supply_.line.offer(member.pool);
    // Its node may have been cordoned while it started.
    if (runtime_.inCluster()) supply_.work.add({WorkKind::Sandbox, member.id, member.pool});
}

void SandboxStarter::failed(const pool::Member& member, const std::string& why,
                            const std::string& told, bool full) {
    supply_.breaker.failed(member.pool, why, full);
    history_.metrics.sandboxFailure(member.pool, "create");
    history_.log.error("sandbox.create_failed",
                       {{"sandbox", member.id}, {"pool", member.pool}, {"error", why}});
    history_.events.publish({.type = "sandbox.failed",
                             .resource = member.id,
                             .pool = member.pool,
                             .reason = "failed",
                             .message = told});
    supply_.warm.fail(member.id);
    if (supply_.breaker.state(member.pool).createsFail()) supply_.line.failWaiting(member.pool);
    supply_.work.add({WorkKind::Sandbox, member.id, member.pool});
}

void SandboxStarter::forget(const pool::SandboxId& id) {
    {
        const MutexLock lock(mutex_);
        accepted_.erase(id);
    }
    unpacking_.forget({WorkKind::Create, id});
}

}  // namespace hearth::controller
