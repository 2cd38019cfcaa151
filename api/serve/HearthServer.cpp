#include "api/serve/HearthServer.h"

#include <malloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/auth/Authenticator.h"
#include "api/auth/oidc/Issuers.h"
#include "api/http/front/Front.h"
#include "api/http/front/OperationsServer.h"
#include "api/kubernetes/PoolObjects.h"
#include "api/kubernetes/WorkspaceObjects.h"
#include "api/serve/Capabilities.h"
#include "api/serve/Endpoints.h"
#include "api/serve/FreshFacts.h"
#include "api/serve/GpuSetup.h"
#include "api/serve/Greeting.h"
#include "api/serve/PartOptions.h"
#include "api/serve/PrivilegedSetup.h"
#include "api/serve/RevocationStore.h"
#include "api/serve/StartupGate.h"
#include "api/serve/TokenFile.h"
#include "api/serve/TraceSetup.h"
#include "api/serve/process/SignalThread.h"
#include "api/serve/runtimes/Runtimes.h"
#include "api/serve/standby/Standby.h"
#include "base/Error.h"
#include "base/Mutex.h"
#include "base/Units.h"
#include "controller/ControlPlane.h"
#include "controller/Services.h"
#include "controller/egress/EgressGateway.h"
#include "controller/egress/images/OperatorProxy.h"
#include "controller/journal/DatabaseFile.h"
#include "controller/journal/SharedHistory.h"
#include "controller/store/SecretKey.h"
#include "controller/store/StateFiles.h"
#include "controller/store/TokenStore.h"
#include "metrics/LogTail.h"
#include "metrics/LogWriter.h"
#include "pool/gpu/NvidiaGpus.h"
#include "pool/sys/NotifySocket.h"

namespace hearth::program {
namespace {

constexpr auto kWarmUpGrace = std::chrono::seconds(30);
constexpr auto kShutdownWait = std::chrono::seconds(15);
constexpr auto kAskAgain = std::chrono::seconds(2);
constexpr int kLauncherDied = 70;
constexpr int kDeposed = 75;

constexpr auto kListens = std::chrono::seconds(1);

/// The server's standard streams. Made as root, because a pipe of root cannot be reopened later.
struct Terminal {
    metrics::LogOutput words{1};
    metrics::LogOutput log{2};
};

/// This replica's part in leading; both are null if there is only one replica.
struct Replica {
    Leadership* leadership = nullptr;
    controller::SharedHistory* shared = nullptr;  ///< null if each replica has its own history
};

/// The object graph. A member is declared after the members it needs, so members are destroyed in
/// the reverse order.
class HearthServer {
public:
    HearthServer(const cli::ServeConfig& config, PrivilegedSetup setup, const Replica& replica,
                 const Reports& reports, SignalThread& signals, const Terminal& terminal,
                 const sys::NotifySocket& manager)
        : config_(config),
          signals_(signals),
          terminal_(terminal),
          manager_(manager),
          setup_(std::move(setup)),
          leadership_(replica.leadership),
          clock_(reports.clock),
          metrics_(reports.metrics),
          log_(reports.log),
          tracer_(reports.tracer),
          reserve_(stateReserve(config, setup_.instance)),
          database_(controller::databasePath(setup_.instance.data_dir), setup_.used_before, log_,
                    metrics_),
          token_history_(controller::tokenHistoryPath(setup_.instance.data_dir),
                         setup_.used_before && database_.begunAnew()),
          journal_(database_.path(), clock_, log_,
                   {.reserve = &reserve_,
                    .metrics = &metrics_,
                    .file = &database_,
                    .shared = led(replica.shared)}),
          tokens_(journal_, token_history_, configuredTokens(*config.tokens), clock_,
                  *config.open_loopback),
          revocations_(journal_, clock_),
          secret_key_((*config.keys).empty()
                          ? controller::keptSecretKey(
                                controller::secretKeyPath(setup_.instance.data_dir), journal_)
                          : controller::sharedKey(*config.keys, "key")),
          runtime_setup_(std::move(setup_.runtime)),
          runtime_(runtime_setup_->make({clock_, log_, metrics_,
                                         [this] {
                                             runtime_died_ = true;
                                             signals_.end();
                                         }})),
          lock_(std::move(setup_.lock)),
          gpus_(makeGpus(config, setup_.gpus)),
          plane_({*runtime_, poller_, journal_, metrics_, log_, clock_, *gpus_, tracer_},
                 planeOptions()),
          audit_(*config.audit_log, clock_, log_, metrics_),
          services_{plane_.pools,
                    plane_.workspaces,
                    plane_.executions,
                    plane_.contexts,
                    plane_.packages,
                    plane_.events,
                    tokens_,
                    plane_.quota_service,
                    plane_.gpu_service,
                    plane_.timelines,
                    plane_.usage_reports,
                    metrics_,
                    log_,
                    clock_,
                    tracer_,
                    [this] {
                        return capabilities(config_, facts_.get(), plane_.specs, plane_.warm,
                                            plane_.gateway, plane_.gpu_service);
                    },
                    secret_key_,
                    [this](const controller::SignedLink& link) {
                        controller::ArtifactStore::Kept kept = plane_.artifact_store.open(
                            {link.tenant, link.workspace, link.artifact});
                        return std::pair(std::move(kept.fd), kept.size);
                    },
                    &audit_},
          issuers_(setup_.issuers, clock_, log_),
          resource_(*config.public_url, issuers_.names()),
          authenticator_(tokens_, secret_key_, &issuers_, &resource_),
          rate_limits_(*config.requests_per_second, *config.request_burst, clock_),
          worker_shares_(auth::WorkerShares::boundsOf(*config.workers)),
          endpoints_(config, services_, authenticator_, resource_, worker_shares_, rate_limits_,
                     revocations_),
          gate_(endpoints_),
          operations_(*config.ops_listen, metrics_, log_, clock_, [this] { return ready(); }),
          access_(*config.access_log, clock_, log_, metrics_),
          front_(frontOptions(config, tracer_, access_), gate_, metrics_, log_, clock_) {
        noteUse(setup_);
    }

    /// Serves until a signal or a failure. Both lead to the same shutdown, so that no sandbox is
    /// left without a server.
    int run() {
        const std::stop_callback no_images(signals_.ended(), [this] { runtime_->stopFetching(); });
        try {
            start();
            while (signals_.wait() == SignalThread::News::HangUp) {
                audit_.reopen();
                access_.reopen();
                if (token_file_) token_file_->hurry();
            }
        } catch (...) {
            stop();
            throw;
        }
        return stop();
    }

private:
    /// Makes this replica's history the one that the others follow from now on.
    controller::SharedHistory* led(controller::SharedHistory* shared) const {
        if (shared == nullptr) return nullptr;
        controller::Database database(database_.path());
        shared->lead(database, leadership_->term());
        return shared;
    }

    controller::PlaneOptions planeOptions() {
        const std::string& data = setup_.instance.data_dir;
        const std::string& shared = *config_.shared_volume;
        return {.secret_key = secret_key_,
                .default_pool = *config_.default_pool,
                .marks = setup_.instance.run_dir + "/marks/claimed",
                .layers = shared.empty() ? data + "/state/layers" : shared + "/locks",
                .traces = *config_.record_traces,
                .artifacts = shared.empty() ? data + "/state/artifacts" : shared + "/artifacts",
                .on_demand = onDemandRules(config_),
                .insecure_registries = *config_.insecure_registries,
                .egress = egressOptions(config_, setup_.instance, secret_key_),
                .deny = denySet(config_),
                .proxy = egress::OperatorProxy::ofEnvironment(),
                .disk = runtime_setup_->usesOurDisk() ? workspaceBudget(config_, setup_.instance)
                                                      : controller::DiskBudget(),
                .reserve = &reserve_,
                .measure = [this] { measure(); },
                .term = leadership_ == nullptr ? 0 : leadership_->term()};
    }

    void measure() {
        const std::string& data = setup_.instance.data_dir;
        measureDisk("state", data + "/state");
        if (runtime_setup_->usesOurDisk()) measureDisk("workspaces", data + "/storage");
        runtime_setup_->measure(metrics_);
    }

    void measureDisk(const char* name, const std::string& path) {
        const std::optional<controller::DiskSpace> disk = controller::diskSpaceAt(path);
        if (!disk) return;
        const std::uint64_t reserve = parseBytes(*config_.state_reserve).value();
        metrics_.disk(name, static_cast<double>(disk->free),
                      static_cast<double>(controller::DiskReserve::of(*disk, reserve)));
    }

    /// Starts all parts. The addresses come first: if they are taken, nothing has been made yet.
    void start() {
        cli::checkExposure(config_, tokens_.configured() || issuers_.any());
        if (!config_.file.empty()) {
            token_file_ =
                std::make_unique<TokenFile>(config_.file, *config_.tokens, tokens_, metrics_, log_);
            token_file_->begin();
        }
        tellAccess();
        plane_.quota_service.declare(setup_.quotas);
        operations_.start();
        front_.start();
        for (const controller::PoolPtr& pool : plane_.specs.all()) metrics_.bornPool(pool->name);
        for (const controller::Pool& pool : setup_.declared) declare(pool);
        for (const controller::Pool& pool : setup_.declared_once) {
            if (!plane_.specs.find(pool.name)) declare(pool);
        }
        followObjects();
        if (ending()) return;
        warnOfMissingDefault();
        gate_.say("asking the sandboxes of the previous run for their state");
        plane_.recover();
        plane_.begin();
        plane_.loop.start();
        looping_ = true;
        plane_.reclaimer.start();
        followLeadership();
        if (pool_objects_) claimForObjects();
        gate_.say("looking for the images of the pools");
        gate_.open();  // earlier workspaces do not wait for images
        prepareImages();
        if (ending()) return;
        started_at_ = clock_.now();
        prepared_ = true;
        manager_.ready();
        greet();
    }

    /// Runs before recovery looks at earlier sandboxes, because sandboxes of a pool that is not
    /// declared would be ended.
    void followObjects() {
        if (!*config_.custom_resources) return adoptPoolsOfObjects();
        gate_.say("reading the pools of the cluster");
        pool_objects_ = std::make_unique<kubernetes::PoolObjects>(clusterOf(config_), plane_.pools,
                                                                  clock_, log_);
        pool_objects_->begin(signals_.ended());
    }

    /// Turns the objects' pools into clients' pools, because otherwise they could not be changed.
    void adoptPoolsOfObjects() {
        for (const controller::PoolPtr& pool : plane_.specs.all()) {
            if (pool->object.empty() || pool->deleting) continue;
            controller::Pool ours = *pool;
            ours.object.clear();
            declare(ours);
        }
    }

    /// While another replica may lead, no sandbox is made here. A claim that would wait for one is
    /// refused, so that its client asks again and may reach that replica.
    void followLeadership() {
        if (leadership_ == nullptr) return;
        const auto follow = [this] {
            const MutexLock lock(leadership_mutex_);  // so the last call uses the latest state
            std::optional<Error> why;
            if (!leadership_->sure()) {
                why = Error(ErrorCode::Unavailable,
                            "no sandbox is free, and none is made: this replica cannot renew its "
                            "Lease, and another may lead")
                          .hint("try again; keyed calls are safe to repeat")
                          .retryAfter(kAskAgain);
            }
            plane_.line.bar(std::move(why));
        };
        leadership_change_ = leadership_->subscribe(follow);
        follow();
    }

    std::string scheme() const { return (*config_.tls_cert).empty() ? "http://" : "https://"; }

    void claimForObjects() {
        const std::string& told =
            (*config_.advertise).empty() ? *config_.listen : *config_.advertise;
        workspace_objects_ = std::make_unique<kubernetes::WorkspaceObjects>(
            clusterOf(config_), plane_.workspaces, secret_key_,
            (*config_.public_url).empty() ? scheme() + told : *config_.public_url, clock_, log_);
        workspace_objects_->begin();
    }

    /// Declares a pool. A file overrides a pool that a client applied later; the log reports it.
    /// A disk that refuses writes does not stop the server: it serves the stored pools.
    void declare(const controller::Pool& pool) {
        try {
            const controller::PoolPtr before = plane_.specs.find(pool.name);
            plane_.pools.declare(pool);
            const controller::PoolPtr after = plane_.specs.find(pool.name);
            if (!before || !after || before->generation == after->generation) return;
            log_.warn("pool.replaced",
                      {{"pool", pool.name},
                       {"by", config_.pools.origin},
                       {"hint",
                        "changes that were applied to it are undone: files of --pools win at each "
                        "start; --pools-once declares only pools that do not exist yet"}});
        } catch (const Error& e) {
            if (e.code() != ErrorCode::DiskFull && e.code() != ErrorCode::Unavailable) throw;
            log_.error("pool.not_declared",
                       {{"pool", pool.name},
                        {"error", e.what()},
                        {"hint",
                         "its stored manifest stays in force; free disk space, then start the "
                         "server again or run: hearth apply -f FILE"}});
        }
    }

    /// Logs why no caller is served, or why callers without a token are.
    void tellAccess() {
        if (tokens_.configured() || issuers_.any() || !token_history_.had()) return;
        if (tokens_.open()) {
            log_.warn("auth.opened", {{"by", config_.open_loopback.origin},
                                      {"hint", "loopback callers are admin without a token"}});
        } else {
            log_.error("auth.closed", {{"error", "this instance had tokens and has none now"},
                                       {"hint", kOpenAgain}});
        }
    }

    bool ending() const { return signals_.ended().stop_requested(); }

    /// Prepares the pools' images; the server is not ready meanwhile. A pool whose image cannot be
    /// prepared is Degraded, with the reason.
    void prepareImages() {
        for (const controller::PoolPtr& pool : plane_.specs.all()) {
            if (!pool->refused.empty() || !pool->on_demand.empty()) continue;
            if (ending()) return;
            const std::string& image = pool->spec.image;
            const TimePoint begin = clock_.now();
            log_.info("image.preparing", {{"pool", pool->name}, {"image", image}});
            try {
                if (!runtime_->readyImage(image)) {
                    gate_.say("unpacking image " + image);
                    say("Unpacking image " + image +
                        ", once; a large one takes about half a minute.    Stop: Ctrl-C\n");
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

    /// True if the pool is declared and is not being deleted.
    bool declares(const std::string& name) const {
        const controller::PoolPtr pool = plane_.specs.find(name);
        return pool && !pool->deleting;
    }
    bool anyDeclared() const {
        const std::vector<controller::PoolPtr> pools = plane_.specs.all();
        return std::any_of(pools.begin(), pools.end(), [](const controller::PoolPtr& pool) {
            return !pool->deleting && pool->on_demand.empty();
        });
    }

    /// Warns if the default pool is missing. It may be declared later; until then requests without
    /// a pool are refused.
    void warnOfMissingDefault() {
        const std::string& name = *config_.default_pool;
        if (name.empty() || declares(name)) return;
        log_.warn("pool.default_missing",
                  {{"pool", name},
                   {"hint",
                    "claims that name no pool are refused until it is declared: hearth "
                    "apply -f, or name another with --default-pool"}});
    }

    /// Ready when every pool was filled once, or after a grace period: a pool that cannot be filled
    /// is Degraded, and the others serve.
    std::pair<bool, std::string> ready() {
        if (stopping_ || signals_.leaving()) return {false, "stopping"};
        if (!prepared_) return {false, gate_.doing()};
        if (plane_.pool_reconciler.drained()) {
            return {false,
                    "drained; the pools stay empty until `hearth undrain` or the next start"};
        }
        if (!warmed_up_ && clock_.now() - started_at_ < kWarmUpGrace) {
            for (const controller::PoolPtr& pool : plane_.specs.all()) {
                if (!pool->refused.empty() || lacksGpus(*pool)) continue;
                const controller::PoolStatus status = plane_.statuses.of(pool->name);
                if (status.observed_generation == 0 ||
                    plane_.warm.counts(pool->name).total() < status.desired ||
                    plane_.warm.counts(pool->name).creating +
                            plane_.warm.counts(pool->name).warming >
                        0) {
                    return {false, "pool " + pool->name + " is filling"};
                }
            }
        }
        warmed_up_ = true;
        const std::string leftovers = plane_.orphans.condition();
        return {true, leftovers.empty() ? "ready" : "ready; " + leftovers};
    }

    /// True if the pool's next sandbox waits for a GPU that is in use elsewhere or unusable.
    bool lacksGpus(const controller::Pool& pool) const {
        return !plane_.breaker.state(pool.name).no_gpus.empty() &&
               plane_.gpus.coming(pool.spec.gpu) == 0;
    }

    void greet() const {
        const std::string& meant = *config_.default_pool;
        const bool closed = tokens_.configured() || issuers_.any();
        const Greeting greeting{
            .url = scheme() + front_.address() + ":" + std::to_string(front_.port()),
            .operations = operations_.address() + ":" + std::to_string(operations_.port()),
            .seed = *config_.compat,
            .access = closed           ? Greeting::Access::WithToken
                      : tokens_.open() ? Greeting::Access::Open
                                       : Greeting::Access::Nobody,
            .missing_pool = meant.empty() || declares(meant) ? "" : meant,
            .any_pool = anyDeclared()};
        say(greeting.text());
    }

    /// Writes to the terminal; gives up after kListens if the terminal takes no more.
    void say(const std::string& words) const {
        static_cast<void>(terminal_.words.say(words, kListens));
    }

    int stop() {
        log_.info("server.stopping");
        manager_.stopping();
        stopping_ = true;
        if (workspace_objects_) workspace_objects_->stop();
        if (pool_objects_) pool_objects_->stop();
        plane_.line.close(Error(ErrorCode::Unavailable, "the server is shutting down")
                              .hint("try again after its restart"));
        plane_.on_demand.stop();
        plane_.layers.stop();
        front_.stop();
        plane_.pool_reconciler.shutDown();
        runtime_->finishWithin(kShutdownWait);
        // With replicas, the next leader continues with the warm sandboxes.
        if (looping_ && !runtime_died_ && leadership_ == nullptr &&
            *config_.shutdown_warm == cli::ShutdownWarm::Destroy) {
            endWarm();
        }
        gpus_->stop();  // stopped first, because a scrub would take minutes
        plane_.loop.stop();
        if (!runtime_died_) plane_.usage.look();
        journal_.flush(kShutdownWait);
        operations_.stop();
        if (leadership_ != nullptr) leadership_->release();
        lock_.reset();  // the launcher, which ends now, removes the folder if no sandbox is left
        log_.info("server.stopped");
        return runtime_died_ ? kLauncherDied : 0;
    }

    void endWarm() {
        const auto warm = [](const pool::Member& member) {
            return member.phase != pool::Phase::Claimed;
        };
        for (const pool::Member& member : plane_.warm.all()) {
            if (warm(member)) plane_.terminator.retire(member, EndReason::Shutdown);
        }
        const TimePoint until = clock_.now() + kShutdownWait;
        for (TimePoint now = clock_.now(); now < until; now = clock_.now()) {
            const std::uint64_t seen = plane_.warm.removals();
            const std::vector<pool::Member> left = plane_.warm.all();
            if (std::none_of(left.begin(), left.end(), warm)) return;
            plane_.warm.awaitRemoval(seen,
                                     std::chrono::ceil<std::chrono::milliseconds>(until - now));
        }
    }

    const cli::ServeConfig& config_;
    SignalThread& signals_;
    const Terminal& terminal_;
    const sys::NotifySocket& manager_;
    PrivilegedSetup setup_;
    Leadership* const leadership_;
    const Clock& clock_;
    metrics::Metrics& metrics_;
    metrics::Log& log_;
    const metrics::Tracer& tracer_;
    const controller::DiskReserve reserve_;  ///< on the state's disk
    std::atomic<bool> stopping_{false};
    std::atomic<bool> warmed_up_{false};
    std::atomic<bool> runtime_died_{false};
    bool looping_ = false;
    TimePoint started_at_{};  ///< set before prepared_
    std::atomic<bool> prepared_{false};
    agent::Poller poller_;  ///< first: the journal's callbacks hold agent clients, too
    controller::DatabaseFile database_;
    controller::TokenHistory token_history_;
    controller::Journal journal_;
    controller::TokenStore tokens_;
    RevocationStore revocations_;
    /// Made last of the state: it marks the instance as used, after the token history is written.
    const std::string secret_key_;
    const std::unique_ptr<PreparedRuntime> runtime_setup_;
    std::unique_ptr<pool::ContainerRuntime> runtime_;
    FreshFacts facts_{[this] { return runtime_->facts(); }, clock_};
    Fd lock_;  ///< released before the launcher ends, which then removes the unused folder
    const std::unique_ptr<pool::GpuHost> gpus_;
    controller::ControlPlane plane_;
    metrics::AuditLog audit_;
    controller::Services services_;
    auth::Issuers issuers_;
    auth::ProtectedResource resource_;
    auth::Authenticator authenticator_;
    auth::RateLimits rate_limits_;
    auth::WorkerShares worker_shares_;
    Endpoints endpoints_;
    StartupGate gate_;
    api::OperationsServer operations_;
    api::AccessLog access_;
    api::Front front_;
    std::unique_ptr<kubernetes::PoolObjects> pool_objects_;  ///< null: only files and clients
    std::unique_ptr<kubernetes::WorkspaceObjects> workspace_objects_;
    Mutex leadership_mutex_;
    std::shared_ptr<void> leadership_change_;
    std::unique_ptr<TokenFile> token_file_;  ///< null without --config
};

/// Makes the allocator return large blocks to the machine. By default it raises its threshold to
/// the largest block ever freed (16 MiB of output), and each heap may keep that much.
void keepHeapSmall() {
    constexpr int kLarge = 128 << 10;
    constexpr int kKept = 1 << 20;
    ::mallopt(M_MMAP_THRESHOLD, kLarge);
    ::mallopt(M_TRIM_THRESHOLD, kKept);
}

}  // namespace

/// Ends the process because another replica leads, which further work here would only disturb. That
/// replica owns the sandboxes now, so they are not ended.
[[noreturn]] void leave(metrics::Log& log, const std::string& why) {
    log.error("leader.deposed", {{"why", why}});
    std::_Exit(kDeposed);
}

int serve(const cli::ServeConfig& config, const RuntimeFactory* runtime) {
    keepHeapSmall();
    const std::optional<metrics::OtlpSettings> trace_settings = traceSettings();
    const Terminal terminal;
    const sys::NotifySocket manager = sys::NotifySocket::ofEnvironment();
    PrivilegedSetup setup = prepare(config, runtime);
    SignalThread signals(std::chrono::seconds(*config.shutdown_delay_seconds));
    std::signal(SIGPIPE, SIG_IGN);
    ::umask(077);
    const SystemClock clock;
    metrics::Metrics metrics;
    metrics::LogWriter writer(terminal.log, metrics, metrics::LogWriter::kMost, *config.log_format);
    metrics::LogTail tail;
    metrics::Log log(writer, *config.log_level, &tail);
    const TraceSetup traces(trace_settings, clock, log, metrics);
    const Reports reports{clock, metrics, log, traces.tracer()};
    const std::unique_ptr<Leadership> leadership = setup.runtime->leadership(clock, log);
    const std::unique_ptr<controller::SharedHistory> shared = sharedHistory(
        config, leadership.get(), controller::databasePath(setup.instance.data_dir), log);
    if (leadership) {
        const auto deposed = [&log](const std::string& why) { leave(log, why); };
        if (!standBy(config, *leadership, shared.get(), reports, signals, deposed)) return 0;
    }
    return HearthServer(config, std::move(setup), {leadership.get(), shared.get()}, reports,
                        signals, terminal, manager)
        .run();
}

}  // namespace hearth::program
