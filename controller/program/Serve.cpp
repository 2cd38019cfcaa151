#include "controller/program/Serve.h"

#include <malloc.h>
#include <sys/stat.h>

#include <algorithm>
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
#include "controller/program/Doorway.h"
#include "controller/program/EndSignals.h"
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
    Server(const cli::ServeConfig& config, Groundwork ground, EndSignals& signals)
        : config_(config),
          signals_(signals),
          ground_(std::move(ground)),
          log_(2, logLevel(*config.log_level)),
          secret_key_(controller::loadSecretKey(ground_.instance.data_dir + "/state/key")),
          journal_(ground_.instance.data_dir + "/state/hearth.db", clock_, log_),
          events_(journal_, clock_),
          tokens_(journal_, configuredTokens(config), clock_),
          specs_(journal_, clock_),
          marks_(ground_.instance.run_dir + "/marks/claimed"),
          runtime_(makeRuntime()),
          lock_(std::move(ground_.lock)),
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
          doorway_(endpoints_),
          operations_(*config.ops_listen, metrics_, log_, clock_, [this] { return ready(); }),
          front_(frontOptions(config), doorway_, metrics_, log_, clock_) {}

    /// Serves until it is told to end. Whatever fails on the way, what was begun is ended as after
    /// a signal: no sandbox is left behind without a server.
    int run() {
        const std::stop_callback no_images(signals_.ended(), [this] { runtime_->stopFetching(); });
        try {
            start();
            while (signals_.wait() == EndSignals::News::HangUp) audit_.reopen();
        } catch (...) {
            stop();
            throw;
        }
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
                signals_.end();
            });
        return std::make_unique<pool::OciRuntime>(ground_.instance, *launcher_);
    }

    /// The addresses first: who cannot have them has made nothing yet.
    void start() {
        cli::checkExposure(config_, tokens_.configured());
        operations_.start();
        front_.start();
        executions_.collectInto(artifacts_);
        for (const controller::PoolPtr& pool : specs_.all()) metrics_.bornPool(pool->name);
        for (const controller::Pool& pool : ground_.declared) pools_.declare(pool);
        warnOfMissingDefault();
        doorway_.say("asking the sandboxes of before who they are");
        controller::Recovery(*runtime_, warm_, marks_, sandboxes_, specs_, table_, executions_,
                             journal_, log_, broker_, clock_)
            .run();
        handleWork();
        loop_.start(kReconcileWorkers);
        looping_ = true;
        reclaimer_.start();
        prepareImages();
        if (ending()) return;
        started_at_ = clock_.now();
        doorway_.open();
        greet();
    }

    bool ending() const { return signals_.ended().stop_requested(); }

    /// Nobody is asked to wait for a sandbox while an image is unpacked for the first time. One
    /// that cannot be prepared leaves its pool Degraded, which tells why.
    void prepareImages() {
        for (const controller::PoolPtr& pool : specs_.all()) {
            if (!pool->refused.empty() || !pool->on_demand.empty()) continue;
            if (ending()) return;
            const std::string& image = pool->spec.image;
            const TimePoint begin = clock_.now();
            log_.info("image.preparing", {{"pool", pool->name}, {"image", image}});
            try {
                if (runtime_->mustUnpack(image)) {
                    doorway_.say("unpacking image " + image);
                    std::cout << "Unpacking image " << image
                              << ", once; a large one takes about half a minute.    Stop: Ctrl-C\n"
                              << std::flush;
                }
                runtime_->resolveImage(image);
                log_.info("image.ready",
                          {{"image", image}, {"seconds", toSeconds(clock_.now() - begin)}});
            } catch (const std::exception& e) {
                if (ending()) return;
                log_.warn("image.not_ready", {{"image", image}, {"error", e.what()}});
            }
        }
    }

    /// Declared, and not on its way out.
    bool declares(const std::string& name) const {
        const controller::PoolPtr pool = specs_.find(name);
        return pool && !pool->deleting;
    }
    bool anyDeclared() const {
        const std::vector<controller::PoolPtr> pools = specs_.all();
        return std::any_of(pools.begin(), pools.end(), [](const controller::PoolPtr& pool) {
            return !pool->deleting && pool->on_demand.empty();
        });
    }

    /// It may still be declared; until then who names no pool is told.
    void warnOfMissingDefault() {
        const std::string& name = *config_.default_pool;
        if (name.empty() || declares(name)) return;
        log_.warn("pool.default_missing",
                  {{"pool", name},
                   {"hint",
                    "claims that name no pool are refused until it is declared: hearth "
                    "apply -f, or name another with --default-pool"}});
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
        if (stopping_) return {false, "stopping"};
        if (!doorway_.isOpen()) return {false, doorway_.doing()};
        if (pool_reconciler_.drained()) {
            return {false, "drained; the pools stay empty until the server is started again"};
        }
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
                  << firstStep(program, there) << "    Stop: Ctrl-C\n"
                  << std::flush;
    }

    std::string firstStep(const std::string& program, const std::string& there) const {
        const std::string with = tokens_.configured() ? ", with HEARTH_TOKEN set: " : ": ";
        const std::string& meant = *config_.default_pool;
        if (!meant.empty() && !declares(meant)) {
            return "The default pool " + meant + " is not declared. Declare it" + with + program +
                   " apply" + there + " -f FILE";
        }
        if (!anyDeclared()) {
            return "No pool is declared. Declare one" + with + program + " apply" + there +
                   " -f FILE (sandbox_images/python/pool.yaml is one)";
        }
        return "Try" + with + program + " run" + there + " -l python -c 'print(1)'";
    }

    int stop() {
        log_.info("server.stopping");
        stopping_ = true;
        claim_queue_.close(Error(ErrorCode::Unavailable, "the server is shutting down")
                               .hint("try again when it was started again"));
        on_demand_.stop();
        layers_.stop();
        front_.stop();
        pool_reconciler_.stopRefill();
        if (looping_ && !launcher_died_ && *config_.shutdown_warm == cli::ShutdownWarm::Destroy)
            endWarm();
        loop_.stop();
        journal_.flush(kShutdownWait);
        operations_.stop();
        lock_.reset();  // the launcher, which ends now, removes the folder if nobody lives
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
    EndSignals& signals_;
    Groundwork ground_;
    SystemClock clock_;
    metrics::Log log_;
    metrics::Metrics metrics_;
    std::atomic<bool> stopping_{false};
    std::atomic<bool> warmed_up_{false};
    std::atomic<bool> launcher_died_{false};
    bool looping_ = false;
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
    Fd lock_;  ///< goes before the launcher, which then finds that nobody needs the folder
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
    Doorway doorway_;
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
    EndSignals signals;
    std::signal(SIGPIPE, SIG_IGN);
    ::umask(077);
    return Server(config, std::move(ground), signals).run();
}

}  // namespace hearth::program
