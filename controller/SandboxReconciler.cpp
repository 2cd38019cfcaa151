#include "controller/SandboxReconciler.h"

#include <algorithm>
#include <stdexcept>

#include "base/CrashPoint.h"
#include "controller/TemplateHash.h"

namespace hearth::controller {
namespace {

constexpr auto kAgentStart = std::chrono::seconds(10);
/// A sandbox that its runtime has only accepted: how long it may take, and how often to look even
/// without news.
constexpr auto kStartTime = std::chrono::minutes(5);
constexpr auto kLookAgain = std::chrono::seconds(2);

/// A few questions that change nothing: the agent's code and memory are then in place, and the bind
/// of a claim does not pay for it.
void rehearse(agent::AgentClient& agent) {
    for (int i = 0; i < 3; ++i) {
        try {
            agent.touch();
        } catch (const agent::AgentError&) {
            // Refused before the bind: all the same.
        }
    }
}

}  // namespace

SandboxReconciler::SandboxReconciler(pool::ContainerRuntime& runtime, pool::WarmPool& warm,
                                     pool::ClaimMarks& marks, agent::Poller& poller,
                                     const SpecStore& specs, Endings& endings, ClaimQueue& claims,
                                     Breaker& breaker, WorkQueue& work, EventLog& events,
                                     metrics::Metrics& metrics, metrics::Log& log, Layers& layers,
                                     const Clock& clock)
    : runtime_(runtime),
      warm_(warm),
      marks_(marks),
      poller_(poller),
      specs_(specs),
      endings_(endings),
      claims_(claims),
      breaker_(breaker),
      work_(work),
      events_(events),
      metrics_(metrics),
      log_(log),
      layers_(layers),
      clock_(clock) {
    gate_->endings = &endings_;
}

SandboxReconciler::~SandboxReconciler() {
    const std::lock_guard lock(gate_->mutex);  // after the calls that are under way
    gate_->endings = nullptr;
}

ReconcileResult SandboxReconciler::reconcile(const pool::SandboxId& id) {
    const std::optional<pool::Member> member = warm_.find(id);
    if (!member || member->phase == pool::Phase::Draining || member->phase == pool::Phase::Failed) {
        const bool warming = giveUp(id);
        if (member && member->phase == pool::Phase::Failed && warming) {
            breaker_.failed(member->pool, "its agent was lost while it warmed up");
        }
        destroy(id);
        if (member) work_.add({"pool", member->pool});
    } else if (member->phase == pool::Phase::Creating) {
        return bringUp(*member);
    } else if (member->phase == pool::Phase::Warming) {
        return goOn(*member);
    } else {
        look(id);
    }
    return ReconcileResult::settled();
}

ReconcileResult SandboxReconciler::weigh(const pool::SandboxId& id) {
    const std::optional<pool::Member> member = warm_.find(id);
    if (member && !runtime_.goFirst(id, member->phase == pool::Phase::Ready)) {
        throw std::runtime_error("the weight of sandbox " + id + " stayed as it was");
    }
    return ReconcileResult::settled();
}

bool SandboxReconciler::giveUp(const pool::SandboxId& id) {
    std::shared_ptr<Warmup> last;  // declared first: ends outside the lock
    const std::lock_guard lock(mutex_);
    const auto found = warming_.find(id);
    if (found == warming_.end()) return false;
    last = std::move(found->second.warmup);
    warming_.erase(found);
    return true;
}

void SandboxReconciler::look(const pool::SandboxId& id) {
    const std::optional<pool::SandboxInfo> info = runtime_.find(id);
    if (!info || !info->alive) endings_.lost(id, "its container has ended");
}

std::shared_ptr<agent::AgentClient> SandboxReconciler::connect(const pool::SandboxId& id,
                                                               std::chrono::milliseconds timeout) {
    return std::make_shared<agent::AgentClient>(
        poller_, [this, id] { return runtime_.connect(id); }, epoch_.load(), timeout,
        [gate = gate_, id](const std::string& reason) {
            const std::shared_lock lock(gate->mutex);
            if (gate->endings != nullptr) gate->endings->lost(id, reason);
        },
        &clock_);
}

ReconcileResult SandboxReconciler::bringUp(const pool::Member& member) {
    TimePoint since = clock_.now();
    bool asked = false;
    ReconcileResult result = ReconcileResult::settled();
    {
        const std::lock_guard lock(mutex_);
        const auto found = accepted_.find(member.id);
        asked = found != accepted_.end();
        if (asked) since = found->second;
    }
    try {
        if (!asked && !start(member, since)) {
            warm_.drain(member.id);
            work_.add({"sandbox", member.id});
            return ReconcileResult::settled();
        }
        if (!listens(member.id, since)) return ReconcileResult::after(kLookAgain);
        result = warmUp(member, since);
    } catch (const std::exception& e) {
        failed(member, e.what());
    }
    {
        const std::lock_guard lock(mutex_);
        accepted_.erase(member.id);
    }
    work_.add({"pool", member.pool});
    return result;
}

bool SandboxReconciler::start(const pool::Member& member, TimePoint since) {
    const PoolPtr pool = specs_.find(member.pool);
    if (!pool) return false;
    pool::SandboxSpec spec;
    spec.image = pool->spec.image;
    spec.image_digest = runtime_.resolveImage(pool->spec.image);
    const std::optional<Layers::Pin> layer = layers_.pin(pool->spec, spec.image_digest);
    if (!layer || templateHash(pool->spec, layer->digest()) != member.template_hash) return false;
    spec.layer = layer->digest();
    spec.limits = pool->spec.limits;
    spec.storage = pool->spec.storage;
    spec.labels = {{"pool", member.pool},
                   {"template", member.template_hash},
                   {"generation", std::to_string(member.generation)}};
    if (!spec.layer.empty()) spec.labels[kLayerLabel] = spec.layer;
    crashPoint("create.before");
    const auto started = runtime_.create(member.id, spec);
    crashPoint("create.after");
    if (started == pool::ContainerRuntime::Started::Accepted) {
        const std::lock_guard lock(mutex_);
        accepted_.emplace(member.id, since);
    }
    return true;
}

bool SandboxReconciler::listens(const pool::SandboxId& id, TimePoint since) {
    {
        const std::lock_guard lock(mutex_);
        if (!accepted_.contains(id)) return true;
    }
    const std::optional<pool::SandboxInfo> info = runtime_.find(id);
    if (!info || !info->alive) throw std::runtime_error("it ended while it started");
    if (info->listening) return true;
    if (clock_.now() - since > kStartTime) {
        throw std::runtime_error("its agent did not listen in time");
    }
    return false;
}

ReconcileResult SandboxReconciler::warmUp(const pool::Member& member, TimePoint since) {
    if (!warm_.warming(member.id)) return ReconcileResult::settled();  // its end was asked for
    const TimePoint listened = clock_.now();
    const std::shared_ptr<agent::AgentClient> agent = connect(member.id, kAgentStart);
    if (agent->hello().binding) throw std::runtime_error("a new agent says it is bound");
    const PoolPtr pool = specs_.find(member.pool);
    if (!pool || !Warmup::wanted(pool->spec)) {
        ready(member, agent, since, listened);
        return ReconcileResult::settled();
    }
    {
        const std::lock_guard lock(mutex_);
        warming_[member.id] = {std::make_shared<Warmup>(
                                   pool->spec, agent,
                                   [&work = work_, id = member.id] {
                                       work.add({"sandbox", id});
                                   },
                                   clock_),
                               since, listened};
    }
    return goOn(member);
}

ReconcileResult SandboxReconciler::goOn(const pool::Member& member) {
    Warming warming;
    {
        const std::lock_guard lock(mutex_);
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
        const auto left = warming.warmup->due() - clock_.now() + std::chrono::milliseconds(1);
        return ReconcileResult::after(
            std::max<std::chrono::nanoseconds>(left, std::chrono::milliseconds(1)));
    }
    {
        const std::lock_guard lock(mutex_);
        warming_.erase(member.id);
    }
    if (state == Warmup::State::Failed) {
        failed(member, why, why);
    } else {
        const std::string missing = warming.warmup->missing();
        if (breaker_.prewarmed(member.pool, missing)) {
            events_.publish(
                {.type = missing.empty() ? "pool.prewarmed" : "pool.prewarm_failed",
                 .resource = member.pool,
                 .pool = member.pool,
                 .reason = missing.empty() ? "Complete" : "Incomplete",
                 .message = missing.empty() ? "all that is asked for is warm" : missing});
        }
        ready(member, warming.warmup->agent(), warming.since, warming.listened);
    }
    work_.add({"pool", member.pool});
    return ReconcileResult::settled();
}

void SandboxReconciler::ready(const pool::Member& member,
                              const std::shared_ptr<agent::AgentClient>& agent, TimePoint since,
                              TimePoint listened) {
    rehearse(*agent);
    static_cast<void>(runtime_.goFirst(member.id, true));  // without it, it is only slower
    if (!warm_.ready(member.id, agent, clock_.wall(),
                     {.create = listened - since, .warm = clock_.now() - listened})) {
        return;  // lost while it warmed
    }
    breaker_.succeeded(member.pool, clock_.now() - since);
    metrics_.sandboxStart(member.pool, toSeconds(clock_.now() - since));
    claims_.offer(member.pool);
}

void SandboxReconciler::failed(const pool::Member& member, const std::string& why,
                               const std::string& told) {
    breaker_.failed(member.pool, why);
    metrics_.sandboxFailure(member.pool, "create");
    log_.error("sandbox.create_failed",
               {{"sandbox", member.id}, {"pool", member.pool}, {"error", why}});
    events_.publish({.type = "sandbox.failed",
                     .resource = member.id,
                     .pool = member.pool,
                     .reason = "failed",
                     .message = told});
    warm_.fail(member.id);
    work_.add({"sandbox", member.id});
}

void SandboxReconciler::destroy(const pool::SandboxId& id) {
    crashPoint("destroy.before");
    runtime_.destroy(id);
    crashPoint("destroy.after");
    {
        const std::lock_guard lock(mutex_);
        accepted_.erase(id);
    }
    marks_.clear(id);
    warm_.remove(id);
}

}  // namespace hearth::controller
