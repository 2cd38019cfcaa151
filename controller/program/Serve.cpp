#include "controller/program/Serve.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "api/auth/Authenticator.h"
#include "api/cli/ProgramPath.h"
#include "api/http/Front.h"
#include "api/http/Operations.h"
#include "base/Error.h"
#include "controller/Claims.h"
#include "controller/ContextService.h"
#include "controller/ExecutionService.h"
#include "controller/LayerBuilder.h"
#include "controller/Layers.h"
#include "controller/Packages.h"
#include "controller/PoolService.h"
#include "controller/Reclaimer.h"
#include "controller/Recovery.h"
#include "controller/SecretKey.h"
#include "controller/Services.h"
#include "controller/TokenStore.h"
#include "controller/WorkspaceService.h"
#include "controller/broker/Broker.h"
#include "controller/program/Capabilities.h"
#include "controller/program/Endpoints.h"
#include "controller/program/Groundwork.h"
#include "controller/program/Options.h"
#include "pool/ClaimMarks.h"
#include "pool/launcher/LauncherClient.h"
#include "pool/runtime/FakeRuntime.h"
#include "pool/runtime/OciRuntime.h"
#include "pool/runtime/docker/DockerRuntime.h"

namespace hearth::program {
namespace {

constexpr unsigned kReconcileWorkers = 8;
constexpr auto kOrphanSweep = std::chrono::seconds(60);
constexpr auto kWarmUpGrace = std::chrono::seconds(30);
constexpr auto kShutdownWait = std::chrono::seconds(15);
constexpr int kLauncherDied = 70;

/// The object graph. Members are declared in the order in which they need each other, so they end
/// in the reverse.
class Server {
public:
    Server(const cli::ServeConfig& config, Groundwork ground)
        : config_(config),
          ground_(std::move(ground)),
          log_(2, logLevel(*config.log_level)),
          secret_key_(controller::loadSecretKey(ground_.instance.data_dir + "/state/key")),
          journal_(ground_.instance.data_dir + "/state/hearth.db", clock_, log_),
          events_(journal_, clock_),
          tokens_(journal_, configuredTokens(config), clock_),
          specs_(journal_, clock_),
          marks_(ground_.instance.run_dir + "/marks/claimed"),
          runtime_(makeRuntime()),
          work_(clock_, metrics_),
          breaker_(clock_),
          claim_queue_(warm_, work_, breaker_, metrics_, clock_),
          broker_(brokerOptions(config, ground_.instance, secret_key_), log_, metrics_, clock_),
          endings_(table_, warm_, work_, journal_, events_, metrics_, log_, broker_, clock_),
          layer_builder_(
              *runtime_, poller_, broker_, [this] { return sandboxes_.epoch(); },
              ground_.instance.data_dir + "/state/layers", log_, clock_),
          layers_(*runtime_, layer_builder_,
                  controller::LayerLocks(ground_.instance.data_dir + "/state/layers"), specs_,
                  work_, breaker_, events_, log_, clock_),
          sandboxes_(*runtime_, warm_, marks_, poller_, specs_, endings_, claim_queue_, breaker_,
                     work_, events_, metrics_, log_, layers_, clock_),
          pool_reconciler_(specs_, warm_, claim_queue_, breaker_, endings_, work_, table_, events_,
                           metrics_, layers_, outside_, clock_),
          claims_(table_, claim_queue_, sandboxes_, *runtime_, marks_, endings_, work_, journal_,
                  events_, metrics_, log_, broker_, clock_),
          on_demand_(onDemandRules(config), *runtime_, specs_, warm_, claim_queue_, work_, events_,
                     metrics_, log_, *config.default_pool, clock_),
          workspaces_(table_, claims_, endings_, specs_, journal_, sandboxes_, warm_, *runtime_,
                      on_demand_, broker_, *config.default_pool, secret_key_, clock_),
          artifact_store_(ground_.instance.data_dir + "/state/artifacts", table_, journal_, log_,
                          clock_),
          artifacts_(artifact_store_, log_, secret_key_, clock_),
          executions_(workspaces_, table_, endings_, journal_, *runtime_, work_, events_, metrics_,
                      log_, secret_key_, broker_.mirrored(), clock_),
          contexts_(workspaces_, table_, endings_, journal_, events_, metrics_, secret_key_,
                    clock_),
          pools_(specs_, pool_reconciler_, warm_, table_, endings_, events_, work_, metrics_,
                 runtime_->facts().name, clock_),
          loop_(work_, metrics_, log_, clock_),
          reclaimer_(table_, endings_, clock_),
          audit_(*config.audit_log, clock_, log_, metrics_),
          services_{pools_,
                    workspaces_,
                    executions_,
                    contexts_,
                    packages_,
                    events_,
                    tokens_,
                    metrics_,
                    log_,
                    clock_,
                    [this] { return capabilities(config_, *runtime_, specs_, warm_, broker_); },
                    secret_key_,
                    [this](const controller::SignedLink& link) {
                        controller::ArtifactStore::Kept kept =
                            artifact_store_.open({link.tenant, link.workspace, link.artifact});
                        return std::pair(std::move(kept.fd), kept.size);
                    },
                    &audit_},
          authenticator_(tokens_),
          rate_limits_(*config.requests_per_second, *config.request_burst, clock_),
          worker_shares_(std::max<std::size_t>(*config.workers * 3 / 8, 4)),
          endpoints_(config, services_, authenticator_, worker_shares_, rate_limits_),
          operations_(*config.ops_listen, metrics_, log_, clock_, [this] { return ready(); }),
          front_(frontOptions(config), endpoints_, metrics_, log_, clock_) {}

    int run(const sigset_t& signals) {
        cli::checkExposure(config_, tokens_.configured());
        executions_.collectInto(artifacts_);
        for (const controller::PoolPtr& pool : specs_.all()) metrics_.bornPool(pool->name);
        for (const controller::Pool& pool : ground_.declared) pools_.declare(pool);
        operations_.start();
        controller::Recovery(*runtime_, warm_, marks_, sandboxes_, specs_, table_, executions_,
                             journal_, log_, broker_, clock_)
            .run();
        handleWork();
        loop_.start(kReconcileWorkers);
        reclaimer_.start();
        prepareImages();
        front_.start();
        started_at_ = clock_.now();
        serving_ = true;
        greet();
        waitForEnd(signals, audit_);
        return stop();
    }

private:
    std::unique_ptr<pool::ContainerRuntime> makeRuntime() {
        if (ground_.docker) {
            auto docker = std::make_unique<pool::DockerRuntime>(
                ground_.instance, std::move(ground_.docker), besideProgram("hearth-agent"),
                *config_.docker_agent);
            log_.info("docker.agent", {{"mode", cli::agentModeName(docker->agentChoice().mode)},
                                       {"why", docker->agentChoice().reason}});
            return docker;
        }
        if (!ground_.launcher) return std::make_unique<pool::FakeRuntime>(clock_);
        launcher_ =
            std::make_unique<pool::LauncherClient>(std::move(ground_.launcher), log_, [this] {
                log_.error("launcher.died", {{"hint", "sandboxes live on; start hearth again"}});
                launcher_died_ = true;
                ::kill(::getpid(), SIGTERM);
            });
        return std::make_unique<pool::OciRuntime>(ground_.instance, *launcher_);
    }

    /// Nobody is asked to wait for a sandbox while an image is unpacked for the first time. One
    /// that cannot be prepared leaves its pool Degraded, which tells why.
    void prepareImages() {
        for (const controller::PoolPtr& pool : specs_.all()) {
            if (!pool->refused.empty() || !pool->on_demand.empty()) continue;
            const TimePoint begin = clock_.now();
            log_.info("image.preparing", {{"pool", pool->name}, {"image", pool->spec.image}});
            try {
                runtime_->resolveImage(pool->spec.image);
                log_.info("image.ready", {{"image", pool->spec.image},
                                          {"seconds", toSeconds(clock_.now() - begin)}});
            } catch (const std::exception& e) {
                log_.warn("image.not_ready", {{"image", pool->spec.image}, {"error", e.what()}});
            }
        }
    }

    void handleWork() {
        runtime_->onNews([this](const pool::SandboxId& id) { work_.add({"sandbox", id}); });
        loop_.handle("pool",
                     [this](const std::string& name) { return pool_reconciler_.reconcile(name); });
        loop_.handle("sandbox", [this](const std::string& name) {
            // What makes a layer is no member of a pool, and no orphan either.
            if (layer_builder_.owns(name)) return controller::ReconcileResult::settled();
            return sandboxes_.reconcile(name);
        });
        loop_.handle("weight", [this](const std::string& name) { return sandboxes_.weigh(name); });
        loop_.handle("layer", [this](const std::string& name) { return layers_.make(name); });
        loop_.handle("layers", [this](const std::string&) { return layers_.collect(); });
        loop_.handle("execution",
                     [this](const std::string& name) { return executions_.settle(name); });
        loop_.handle("forget",
                     [this](const std::string& name) { return executions_.forget(name); });
        loop_.handle("image", [this](const std::string& name) { return on_demand_.prepare(name); });
        loop_.handle("images", [this](const std::string&) { return on_demand_.collect(); });
        loop_.handle("artifacts", [this](const std::string&) { return artifact_store_.prune(); });
        loop_.handle("overdue", [this](const std::string&) { return executions_.endOverdue(); });
        loop_.handle("orphans", [this](const std::string&) { return sweepOrphans(); });
        for (const controller::PoolPtr& pool : specs_.all()) work_.add({"pool", pool->name});
        work_.add({"overdue", "all"});
        work_.add({"images", "all"});
        work_.add({"layers", "all"});
        work_.add({"artifacts", "all"});
        work_.addAfter({"orphans", "all"}, kOrphanSweep);
    }

    /// What the runtime has and nobody knows: a create that failed half-way, a lost record.
    controller::ReconcileResult sweepOrphans() {
        for (const pool::SandboxInfo& info : runtime_->list()) {
            if (!warm_.find(info.id)) work_.add({"sandbox", info.id});
        }
        return controller::ReconcileResult::after(kOrphanSweep);
    }

    /// Ready once every pool was filled, or after a grace: a pool that cannot be filled is
    /// Degraded, and the others serve.
    std::pair<bool, std::string> ready() {
        if (!serving_) return {false, "starting or stopping"};
        if (!warmed_up_ && clock_.now() - started_at_ < kWarmUpGrace) {
            for (const controller::PoolPtr& pool : specs_.all()) {
                if (!pool->refused.empty()) continue;
                if (warm_.counts(pool->name).total() < pool->spec.warm_min ||
                    pool_reconciler_.status(pool->name).observed_generation == 0 ||
                    warm_.counts(pool->name).creating + warm_.counts(pool->name).warming > 0) {
                    return {false, "pool " + pool->name + " is filling"};
                }
            }
        }
        warmed_up_ = true;
        return {true, "ready"};
    }

    /// Every command in it works as it stands, whatever is on the PATH.
    void greet() const {
        const std::string url = "http://" + front_.address() + ":" + std::to_string(front_.port());
        const std::string program = cli::programWord(cli::programPath(), std::getenv("PATH"));
        const std::string& seed = *config_.compat;
        const std::string there = url == "http://127.0.0.1:8080" ? "" : " --url " + url;
        std::cout << "Hearth " << HEARTH_VERSION << " serves\n"
                  << "  REST        " << url << "/v1      (docs: " << url << "/docs)\n"
                  << "  MCP         " << url
                  << (seed.empty()
                          ? "/mcp     (" + program + " mcp-config claude-code" + there + ")"
                          : "/hearth/mcp; the tools of " + seed + ": " + url + "/mcp, " + url +
                                "/sse")
                  << "\n"
                  << "  operations  http://" << operations_.address() << ":" << operations_.port()
                  << "/metrics /healthz /readyz\n"
                  << (tokens_.configured() ? "Try, with HEARTH_TOKEN set: " : "Try: ") << program
                  << " run" << there << " -l python -c 'print(1)'    Stop: Ctrl-C\n"
                  << std::flush;
    }

    static void waitForEnd(const sigset_t& signals, metrics::AuditLog& audit) {
        int signal = 0;
        while (::sigwait(&signals, &signal) != 0 || signal == SIGHUP) {
            if (signal == SIGHUP) audit.reopen();
        }
        // A second one does not wait for anything.
        std::signal(SIGTERM, [](int) { ::_exit(1); });
        std::signal(SIGINT, [](int) { ::_exit(1); });
        ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    }

    int stop() {
        log_.info("server.stopping");
        serving_ = false;
        claim_queue_.close("the server is shutting down");
        on_demand_.stop();
        layers_.stop();
        front_.stop();
        pool_reconciler_.stopRefill();
        if (!launcher_died_ && *config_.shutdown_warm == cli::ShutdownWarm::Destroy) endWarm();
        loop_.stop();
        journal_.flush(kShutdownWait);
        operations_.stop();
        ground_.lock.reset();  // the launcher, which ends now, removes the folder if nobody lives
        log_.info("server.stopped");
        return launcher_died_ ? kLauncherDied : 0;
    }

    void endWarm() {
        const auto warm = [](const pool::Member& member) {
            return member.phase != pool::Phase::Claimed;
        };
        for (const pool::Member& member : warm_.all()) {
            if (warm(member)) endings_.retire(member, "shutdown");
        }
        const TimePoint until = clock_.now() + kShutdownWait;
        for (bool left = true; left && clock_.now() < until;) {
            left = false;
            for (const pool::Member& member : warm_.all()) left = left || warm(member);
            if (left) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }

    const cli::ServeConfig& config_;
    Groundwork ground_;
    SystemClock clock_;
    metrics::Log log_;
    metrics::Metrics metrics_;
    std::atomic<bool> serving_{false};
    std::atomic<bool> warmed_up_{false};
    std::atomic<bool> launcher_died_{false};
    TimePoint started_at_{};
    const std::string secret_key_;
    agent::Poller poller_;  ///< first: also the journal's callbacks hold clients of agents
    controller::Journal journal_;
    controller::EventLog events_;
    controller::TokenStore tokens_;
    controller::SpecStore specs_;
    pool::WarmPool warm_;
    pool::ClaimMarks marks_;
    std::unique_ptr<pool::LauncherClient> launcher_;
    std::unique_ptr<pool::ContainerRuntime> runtime_;
    controller::WorkQueue work_;
    controller::Breaker breaker_;
    controller::ClaimQueue claim_queue_;
    controller::WorkspaceTable table_;
    broker::Broker broker_;
    controller::Endings endings_;
    controller::SandboxLayerBuilder layer_builder_;
    controller::Layers layers_;
    controller::SandboxReconciler sandboxes_;
    controller::PoolOutside outside_{broker_, log_, clock_};
    controller::PoolReconciler pool_reconciler_;
    controller::Claims claims_;
    controller::OnDemandPools on_demand_;
    controller::WorkspaceService workspaces_;
    controller::ArtifactStore artifact_store_;
    controller::Artifacts artifacts_;
    controller::ExecutionService executions_;
    controller::ContextService contexts_;
    controller::Packages packages_{executions_, workspaces_, broker_.mirrored()};
    controller::PoolService pools_;
    controller::ReconcileLoop loop_;
    controller::Reclaimer reclaimer_;
    metrics::AuditLog audit_;
    controller::Services services_;
    auth::Authenticator authenticator_;
    auth::RateLimits rate_limits_;
    auth::WorkerShares worker_shares_;
    Endpoints endpoints_;
    api::Operations operations_;
    api::Front front_;
};

/// What is large goes back to the machine when it is freed. Left alone, the allocator takes the
/// largest thing ever freed (16 MiB of output) for what it may keep of each of its heaps.
void keepHeapSmall() {
    constexpr int kLarge = 128 << 10;
    constexpr int kKept = 1 << 20;
    ::mallopt(M_MMAP_THRESHOLD, kLarge);
    ::mallopt(M_TRIM_THRESHOLD, kKept);
}

}  // namespace

int serve(const cli::ServeConfig& config) {
    keepHeapSmall();
    Groundwork ground = prepare(config);
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    ::umask(077);
    return Server(config, std::move(ground)).run(signals);
}

}  // namespace hearth::program
