#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "api/auth/Authenticator.h"
#include "api/cli/Cli.h"
#include "api/cli/ProgramPath.h"
#include "api/cli/RuntimeDecision.h"
#include "api/http/Front.h"
#include "api/http/Operations.h"
#include "api/mcp/conformance/Conformance.h"
#include "api/mcp/http/PlainTools.h"
#include "api/mcp/http/Surface.h"
#include "api/mcp/seeds/Seeds.h"
#include "api/rest/RestHandler.h"
#include "base/Error.h"
#include "base/Instance.h"
#include "base/Units.h"
#include "controller/Claims.h"
#include "controller/ContextService.h"
#include "controller/Database.h"
#include "controller/ExecutionService.h"
#include "controller/LayerBuilder.h"
#include "controller/Layers.h"
#include "controller/Packages.h"
#include "controller/PoolService.h"
#include "controller/Privileges.h"
#include "controller/Reclaimer.h"
#include "controller/Recovery.h"
#include "controller/SecretKey.h"
#include "controller/Services.h"
#include "controller/TokenStore.h"
#include "controller/WorkspaceService.h"
#include "controller/broker/Broker.h"
#include "pool/ClaimMarks.h"
#include "pool/launcher/LauncherClient.h"
#include "pool/runtime/FakeRuntime.h"
#include "pool/runtime/OciRuntime.h"
#include "pool/runtime/docker/DockerRuntime.h"

// Builds the object graph: the one file that sees every level. Members are declared in the order in
// which they need each other, so they end in the reverse.

namespace {

using namespace hearth;

constexpr unsigned kReconcileWorkers = 8;
constexpr auto kLinger = std::chrono::milliseconds(500);
constexpr auto kOrphanSweep = std::chrono::seconds(60);
constexpr auto kWarmUpGrace = std::chrono::seconds(30);
constexpr auto kShutdownWait = std::chrono::seconds(15);
constexpr int kLauncherDied = 70;

/// What was done as root, before the first thread.
struct Groundwork {
    Instance instance;
    Fd lock;
    Fd launcher;                                         ///< with the embedded runtime
    std::unique_ptr<pool::docker::EngineClient> docker;  ///< with docker
    std::vector<controller::Pool> declared;
};

metrics::LogLevel logLevel(const std::string& name) {
    if (name == "debug") return metrics::LogLevel::Debug;
    if (name == "warn") return metrics::LogLevel::Warn;
    if (name == "error") return metrics::LogLevel::Error;
    return metrics::LogLevel::Info;
}

controller::OnDemandRules onDemandRules(const cli::ServeConfig& config) {
    controller::OnDemandRules rules;
    rules.allow = controller::ImageAllowList(*config.on_demand_allow);
    rules.max_sandboxes = *config.on_demand_max_sandboxes;
    rules.keep = std::chrono::seconds(*config.on_demand_keep_seconds);
    rules.max_wait = std::chrono::seconds(*config.on_demand_wait_seconds);
    rules.insecure_registries = *config.insecure_registries;
    return rules;
}

broker::BrokerOptions brokerOptions(const cli::ServeConfig& config, const Instance& instance,
                                    const std::string& secret_key) {
    broker::BrokerOptions options;
    options.mirrors.pypi = *config.mirror_pypi;
    options.mirrors.npm = *config.mirror_npm;
    options.mirrors.hosts = *config.mirror_hosts;
    options.cache_directory = instance.data_dir + "/state/mirror";
    options.cache_bytes = parseBytes(*config.mirror_cache).value();
    options.deny = broker::DenySet(broker::parseRanges(*config.egress_deny, "egress.deny"),
                                   broker::parseRanges(*config.egress_exempt, "egress.exempt"));
    // Told now, in words: a request would only find that there is no such secret.
    const auto readable = [](const auto& setting, int how) {
        if (setting.value.empty() || ::access(setting.value.c_str(), how) == 0) return;
        throw cli::UsageError(
            setting.origin + ": " + setting.value + " cannot be read: " + std::strerror(errno),
            "the user that the server runs as must be able to read it");
    };
    readable(config.egress_secrets, R_OK | X_OK);
    readable(config.egress_ca, R_OK);
    options.secrets_directory = *config.egress_secrets;
    options.ca_file = *config.egress_ca;
    options.seal_key = secret_key;
    return options;
}

std::vector<controller::ConfiguredToken> configuredTokens(const cli::ServeConfig& config) {
    std::vector<controller::ConfiguredToken> tokens;
    for (const cli::TokenConfig& token : *config.tokens) {
        tokens.push_back({token.name, token.tenant, token.role, token.sha256});
    }
    return tokens;
}

/// Sends each request to the surface whose path it has.
class Surfaces final : public api::Handler {
public:
    Surfaces(api::Handler& rest, mcp::Surface& mcp, api::Handler& plain_tools)
        : rest_(rest), mcp_(mcp), plain_tools_(plain_tools) {}

    api::Response handle(api::Request& request) override {
        const std::string& path = request.path();
        if (mcp_.takes(path)) return mcp_.handle(request);
        return mcp::PlainTools::takes(path) ? plain_tools_.handle(request) : rest_.handle(request);
    }

private:
    api::Handler& rest_;
    mcp::Surface& mcp_;
    api::Handler& plain_tools_;
};

std::string besideProgram(const std::string& name) {
    return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

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
                           metrics_, layers_, clock_),
          claims_(table_, claim_queue_, sandboxes_, marks_, endings_, work_, journal_, events_,
                  metrics_, log_, broker_, clock_),
          on_demand_(onDemandRules(config), *runtime_, specs_, warm_, claim_queue_, work_, events_,
                     metrics_, log_, *config.default_pool, clock_),
          workspaces_(table_, claims_, endings_, specs_, journal_, sandboxes_, warm_, *runtime_,
                      on_demand_, broker_, *config.default_pool, secret_key_, clock_),
          artifact_store_(ground_.instance.data_dir + "/state/artifacts", table_, journal_, log_,
                          clock_),
          artifacts_(artifact_store_, log_, secret_key_, clock_),
          executions_(workspaces_, table_, endings_, journal_, *runtime_, work_, events_, metrics_,
                      log_, secret_key_, clock_),
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
                    [this] { return capabilities(); },
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
          rest_(services_, authenticator_, worker_shares_, rate_limits_),
          mcp_(services_, authenticator_, worker_shares_, rate_limits_),
          plain_tools_(services_, authenticator_, worker_shares_, rate_limits_,
                       config.compat.value.empty() ? "s1" : *config.compat),
          surfaces_(rest_, mcp_, plain_tools_),
          operations_(*config.ops_listen, metrics_, log_, clock_, [this] { return ready(); }),
          front_(frontOptions(), surfaces_, metrics_, log_, clock_) {}

    int run(const sigset_t& signals) {
        cli::checkExposure(config_, tokens_.configured());
        executions_.collectInto(artifacts_);
        mountMcp();
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
        warnOfMissingMirrors();
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

    api::FrontOptions frontOptions() const {
        api::FrontOptions options;
        options.listen = *config_.listen;
        options.hosts = *config_.allowed_hosts;
        options.origins = *config_.allowed_origins;
        options.workers = *config_.workers;
        // A client that comes back soon finds its worker still there; who needs one takes it away.
        options.linger = kLinger;
        return options;
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

    /// A pool that offers packages, and nowhere to get them from, is most likely a mistake.
    void warnOfMissingMirrors() {
        if (!broker_.mirrored().empty()) return;
        for (const controller::PoolPtr& pool : specs_.all()) {
            if (pool->spec.network != broker::NetworkMode::Mirror) continue;
            log_.warn("pool.no_mirror",
                      {{"pool", pool->name},
                       {"hint", "start hearth serve with --mirror-pypi or --mirror-npm"}});
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

    /// As an agent of a pool with this image told; empty while there is none.
    std::vector<std::string> languagesOf(const std::string& image) const {
        for (const controller::PoolPtr& pool : specs_.all()) {
            if (pool->spec.image != image) continue;
            if (auto known = warm_.languages(pool->name)) return *std::move(known);
        }
        return {};
    }

    Json capabilities() const {
        const pool::RuntimeFacts facts = runtime_->facts();
        Json images = Json::array();
        for (const std::string& image : facts.images) {
            const auto note = facts.image_notes.find(image);
            if (note == facts.image_notes.end()) {
                images.push_back({{"name", image}, {"languages", languagesOf(image)}});
                continue;
            }
            images.push_back({{"name", image},
                              {"digest", note->second.digest},
                              {"reference", note->second.reference},
                              {"languages", note->second.languages}});
        }
        return {{"version", HEARTH_VERSION},
                {"runtime", facts.name},
                {"runtimeVersion", facts.version},
                {"isolation",
                 {{"userNamespaces", facts.user_namespaces},
                  {"seccomp", facts.seccomp},
                  {"cgroup", facts.cgroup},
                  {"network", "None"},  // of its own: what is allowed goes through the broker
                  {"knownHoles", facts.holes}}},
                {"images", std::move(images)},
                {"onDemand",
                 {{"allow", *config_.on_demand_allow},
                  {"maxSandboxes", *config_.on_demand_max_sandboxes}}},
                {"networks", Json::array({"None", "Mirror", "Egress"})},
                {"mirrors", broker_.mirrored()},
                {"gpus", Json::array()},
                {"protocols",
                 {{"rest", "v1"},
                  {"mcp", Json::array({"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26",
                                       "2024-11-05"})}}}};
    }

    /// Hearth's own endpoint at the root, those of the seeds under /compat; with --compat a seed's
    /// clients find theirs at the root, and Hearth's own is under /hearth.
    void mountMcp() {
        const std::string& compat = *config_.compat;
        mcp_.mount(compat.empty() ? "" : "/hearth",
                   config_.conformance
                       ? mcp::conformance::catalog(services_,
                                                   {[this] { mcp_.notices().toolsChanged(); },
                                                    [this] { mcp_.notices().promptsChanged(); }})
                       : mcp::nativeCatalog(services_));
        for (const mcp::seeds::Seed& seed : mcp::seeds::seeds(services_)) {
            for (const std::string& prefix : {"/compat/" + seed.name, std::string()}) {
                if (prefix.empty() && seed.name != compat) continue;
                mcp_.mount(prefix, {.server_info = seed.server_info,
                                    .instructions = seed.instructions,
                                    .tools = mcp::Toolbox(services_, seed.tools)});
            }
        }
    }

    /// Every command in it works as it stands, whatever is on the PATH.
    void greet() const {
        const std::string url = "http://" + front_.address() + ":" + std::to_string(front_.port());
        const std::string program = cli::programWord(cli::programPath(), std::getenv("PATH"));
        const std::string there = url == "http://127.0.0.1:8080" ? "" : " --url " + url;
        std::cout << "Hearth " << HEARTH_VERSION << " serves\n"
                  << "  REST        " << url << "/v1      (docs: " << url << "/docs)\n"
                  << "  MCP         " << url << "/mcp     (" << program << " mcp-config claude-code"
                  << there << ")\n"
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
    controller::PoolReconciler pool_reconciler_;
    controller::Claims claims_;
    controller::OnDemandPools on_demand_;
    controller::WorkspaceService workspaces_;
    controller::ArtifactStore artifact_store_;
    controller::Artifacts artifacts_;
    controller::ExecutionService executions_;
    controller::ContextService contexts_;
    controller::Packages packages_{executions_, workspaces_};
    controller::PoolService pools_;
    controller::ReconcileLoop loop_;
    controller::Reclaimer reclaimer_;
    metrics::AuditLog audit_;
    controller::Services services_;
    auth::Authenticator authenticator_;
    auth::RateLimits rate_limits_;
    auth::WorkerShares worker_shares_;
    rest::RestHandler rest_;
    mcp::Surface mcp_;
    mcp::PlainTools plain_tools_;
    Surfaces surfaces_;
    api::Operations operations_;
    api::Front front_;
};

std::vector<controller::Pool> readManifests(const std::vector<std::string>& files) {
    std::vector<controller::Pool> pools;
    for (const std::string& file : files) {
        std::ifstream in(file);
        if (!in) throwErrno("open", file);
        std::ostringstream text;
        text << in.rdbuf();
        for (controller::Pool& pool : controller::parsePoolYaml(text.str(), file)) {
            pools.push_back(std::move(pool));
        }
    }
    return pools;
}

/// The directories that the launcher makes where there is one.
void makeServerDirectories(const Instance& instance, const controller::Account& account,
                           const std::vector<std::string>& further = {}) {
    std::vector<std::string> paths = {instance.data_dir + "/state", instance.run_dir + "/marks"};
    paths.insert(paths.end(), further.begin(), further.end());
    for (const std::string& path : paths) {
        std::filesystem::create_directories(path);
        std::filesystem::permissions(path, std::filesystem::perms::owner_all);
        if (::chown(path.c_str(), account.uid, account.gid) != 0) throwErrno("chown", path);
    }
}

/// The group by which an unprivileged server reaches the daemon's socket. Who may use it is root on
/// that daemon's machine, so keeping the group gives no more away than using the runtime does.
std::optional<gid_t> groupOf(const pool::docker::EngineAddress& address) {
    if (address.socket.empty()) return std::nullopt;
    struct stat status {};
    if (::stat(address.socket.c_str(), &status) != 0) throwErrno("stat", address.socket);
    if ((status.st_mode & S_IWOTH) != 0) return std::nullopt;
    if ((status.st_mode & S_IWGRP) == 0) {
        throw Error(ErrorCode::InvalidArgument, "no group may use the socket " + address.socket +
                                                    ", and the server is not root")
            .hint("start dockerd with --group docker, or: chmod g+rw " + address.socket);
    }
    return status.st_gid;
}

/// The docker runtime: no launcher; the server only gives root up, if it has it.
void prepareDocker(Groundwork& ground, const controller::Account& account) {
    const pool::docker::EngineAddress address = pool::docker::engineAddress();
    ground.docker = std::make_unique<pool::docker::EngineClient>(address);
    makeServerDirectories(ground.instance, account,
                          pool::DockerRuntime::directories(ground.instance));
    if (::geteuid() == 0) {
        controller::becomeAccount(account, groupOf(address));
    } else {
        controller::stayAsWeAre();
    }
}

/// The audit log belongs to whom the server becomes; it may lie where only root can make a file.
void prepareAuditLog(const std::string& path, const controller::Account& account) {
    if (path.empty()) return;
    const Fd file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) throwErrno("open the audit log " + path);
    if (::geteuid() == 0 && ::fchown(file.get(), account.uid, account.gid) != 0) {
        throwErrno("chown the audit log " + path);
    }
}

Groundwork prepare(const cli::ServeConfig& config) {
    const cli::RuntimeDecision runtime = cli::decideRuntime(config);
    const bool docker = runtime.choice == cli::RuntimeChoice::Docker;
    const bool root = ::geteuid() == 0;
    if (!root && !docker) {
        throw Error(ErrorCode::InvalidArgument, "hearth serve must be started as root")
            .hint(
                "it keeps root only in a small launcher process; the server itself gives it up; "
                "or use --runtime docker as a user who may open Docker's socket");
    }
    const controller::Account account = root ? controller::findAccount(*config.user)
                                             : controller::Account{"", ::geteuid(), ::getegid()};
    Groundwork ground;
    ground.instance = openInstance(*config.data_dir);
    if (root) requirePassable(ground.instance);
    ground.lock = lockInstance(ground.instance);
    removeDeadRunDirs(ground.instance);
    ground.declared = readManifests(*config.pools);
    prepareAuditLog(*config.audit_log, account);
    controller::raiseFileLimit();
    if (docker) {
        prepareDocker(ground, account);
        return ground;
    }
    if (runtime.choice == cli::RuntimeChoice::Fake) {
        makeServerDirectories(ground.instance, account);
    } else {
        pool::LauncherOptions options;
        options.instance = ground.instance;
        options.runtime = *config.oci_runtime;
        options.agent_path = besideProgram("hearth-agent");
        options.server_uid = account.uid;
        options.server_gid = account.gid;
        ground.launcher = pool::LauncherClient::forkLauncher(options);
    }
    controller::becomeAccount(account);
    return ground;
}

/// What is large goes back to the machine when it is freed. Left alone, the allocator takes the
/// largest thing ever freed (16 MiB of output) for what it may keep of each of its heaps.
void keepHeapSmall() {
    constexpr int kLarge = 128 << 10;
    constexpr int kKept = 1 << 20;
    ::mallopt(M_MMAP_THRESHOLD, kLarge);
    ::mallopt(M_TRIM_THRESHOLD, kKept);
}

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

/// The tokens of a data directory, without a server.
class OfflineTokens final : public controller::Tokens {
public:
    explicit OfflineTokens(const std::string& data_dir)
        : log_(2, metrics::LogLevel::Error),
          journal_(data_dir + "/state/hearth.db", clock_, log_),
          store_(journal_, {}, clock_) {}

    bool configured() const override { return store_.configured(); }
    std::optional<controller::Principal> authenticate(std::string_view token) const override {
        return store_.authenticate(token);
    }
    std::pair<controller::TokenView, std::string> create(
        const controller::Principal& who, const std::string& name, const std::string& tenant,
        controller::Role role, std::optional<std::int64_t> ttl_seconds) override {
        return store_.create(who, name, tenant, role, ttl_seconds);
    }
    std::vector<controller::TokenView> list(const controller::Principal& who) const override {
        return store_.list(who);
    }
    void remove(const controller::Principal& who, const std::string& id) override {
        store_.remove(who, id);
    }

private:
    SystemClock clock_;
    metrics::Log log_;
    controller::Journal journal_;
    controller::TokenStore store_;
};

/// The pools of a data directory, as its server keeps them.
std::vector<controller::Pool> declaredPools(const std::string& data_dir) {
    const std::string path = data_dir + "/state/hearth.db";
    std::vector<controller::Pool> pools;
    if (!std::filesystem::exists(path)) return pools;
    controller::Database database(path);
    controller::Statement row(database, "SELECT document FROM pools");
    while (row.step()) pools.push_back(controller::storedPool(parseJson(row.text(0))));
    return pools;
}

}  // namespace

int main(int argc, char** argv) {
    cli::Program program;
    program.serve = serve;
    program.tokens = [](const std::string& data_dir) {
        return std::make_unique<OfflineTokens>(data_dir);
    };
    program.pools = declaredPools;
    return cli::runCommand(argc, argv, program);
}
